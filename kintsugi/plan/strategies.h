// The named parallel training strategies.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kintsugi/config/settings.h"
#include "kintsugi/plan/model_dims.h"
#include "kintsugi/plan/plan.h"

namespace kintsugi::plan {

struct Strategy {
  std::string_view name;                            // "zero 3"
  void (*apply)(config::Parallel&, int64_t ranks);  // sets what [parallel] then says of axes and of what they split
};

// One rank; then data, zero 1, 2, 3, tensor, tensor and sequence, context in three ways, pipeline.
std::span<const Strategy> strategies();

// [parallel] of a strategy alone, on `ranks` ranks.
config::Parallel parallel_of(const Strategy& strategy, int64_t ranks);

// What a plan splits: "batch, kv_heads in attention; flat of optimizer, gradient". Of a given model: general rules about
// dims that it lacks are left out.
std::string splits_of(const Plan& plan, const ModelDims* model = nullptr);

}  // namespace kintsugi::plan
