// Unusual plans: any dims on any axes, in any order, padded or not. A plan is a function of its seed.
#pragma once

#include <string>

#include "kintsugi/plan/plan.h"
#include "tests/small_model.h"

namespace kintsugi::tests {

config::Settings random_model(uint64_t seed);

plan::Plan random_plan(uint64_t seed);

// The same with stages; the axis may be at any place.
plan::Plan in_stages(plan::Plan plan, uint64_t seed);

// The model of a staged plan, with and without recomputation.
config::Settings staged_model(uint64_t seed);

std::string random_recompute(uint64_t seed);

}  // namespace kintsugi::tests
