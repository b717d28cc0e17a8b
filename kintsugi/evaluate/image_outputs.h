// What a model makes of images: logits of classes, or numbers.
#pragma once

#include <functional>
#include <vector>

#include "kintsugi/evaluate/checkpoint_model.h"
#include "kintsugi/samples/batch.h"

namespace kintsugi::evaluate {

// [sample outputs...], row-major, of all samples of the source, `batch` at a time on all ranks together; the same on
// every rank, which all call it together. `progress` is called with the number of samples that are done.
std::vector<float> outputs_of_samples(CheckpointModel& model, const samples::FiniteSource& source, int64_t batch,
                                      const std::function<void(int64_t)>& progress);

}  // namespace kintsugi::evaluate
