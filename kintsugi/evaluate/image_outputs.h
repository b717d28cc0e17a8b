// The outputs of a model on images: class logits or numbers.
#pragma once

#include <functional>
#include <vector>

#include "kintsugi/evaluate/checkpoint_model.h"
#include "kintsugi/samples/batch.h"

namespace kintsugi::evaluate {

// Returns [sample outputs...], row-major, for all samples of the source, in batches of `batch` across all ranks;
// identical on every rank. Call collectively on all ranks. Calls `progress` with the number of samples done.
std::vector<float> outputs_of_samples(CheckpointModel& model, const samples::FiniteSource& source, int64_t batch,
                                      const std::function<void(int64_t)>& progress);

}  // namespace kintsugi::evaluate
