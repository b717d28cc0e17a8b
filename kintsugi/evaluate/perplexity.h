// The mean loss of a model over a whole token file.
#pragma once

#include <cstdint>
#include <functional>

#include "kintsugi/data/batch.h"
#include "kintsugi/run/evaluate_pass.h"

namespace kintsugi::evaluate {

// Runs the list "evaluate" over `samples` rows of the source. `progress` is called with the rows done; empty: not.
run::LossSum mean_loss(run::Executor& executor, const data::SampleSource& source, int64_t samples,
                       const std::function<void(int64_t)>& progress);

}  // namespace kintsugi::evaluate
