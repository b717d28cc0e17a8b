// A plan against the model that it is for.
#pragma once

#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/plan/plan.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::plan {

// The dims of a model's values in a pass over one micro-batch of all ranks, with their sizes; 0: not known yet.
// `settings` are resolved.
std::vector<tensor::Dim> dims_of(const config::Settings& settings);

// check_rules and check_sizes. That each axis finds a dim somewhere in the step is seen by the partitioner.
void check_plan(const Plan& plan, const config::Settings& settings);

}  // namespace kintsugi::plan
