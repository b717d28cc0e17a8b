// Named strategies of parallel training.
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
  void (*apply)(config::Parallel&, int64_t ranks);  // sets the axes in [parallel] and what they split
};

// One rank; then data, zero 1, 2, 3, tensor, tensor and sequence, context in three variants, pipeline.
std::span<const Strategy> strategies();

// [parallel] of a single strategy, on `ranks` ranks.
config::Parallel parallel_of(const Strategy& strategy, int64_t ranks);

// Summarizes what a plan splits: "batch, kv_heads in attention; flat of optimizer, gradient". With a model, omits
// general rules about dims that it lacks.
std::string splits_of(const Plan& plan, const ModelDims* model = nullptr);

}  // namespace kintsugi::plan
