// The outputs of a model on images: class logits or numbers, per sample or pixel.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "kintsugi/evaluate/checkpoint_model.h"
#include "kintsugi/samples/batch.h"

namespace kintsugi::evaluate {

// Calls take(number of the first sample, outputs) for each batch of the source in order, with [sample outputs...],
// row-major, identical on every rank; `batch` is across all ranks. Call collectively on all ranks. Throws UserError
// "[where] ..." for outputs that are NaN or infinity.
void for_outputs(std::string_view where, CheckpointModel& model, const samples::FiniteSource& source, int64_t batch,
                 const std::function<void(int64_t, std::span<const float>)>& take);

// Returns the outputs of all samples. Calls `progress` with the number of samples done.
std::vector<float> outputs_of_samples(CheckpointModel& model, const samples::FiniteSource& source, int64_t batch,
                                      const std::function<void(int64_t)>& progress);

}  // namespace kintsugi::evaluate
