// Finds the first value that is not finite.
#pragma once

#include <functional>
#include <string>

#include "kintsugi/run/executor.h"

namespace kintsugi::train {

// Runs the list `train` once more and returns the first value that is not finite, as "layer 3, forward: attention
// makes attention.0 of micro-batch 1"; a weight that is not finite at the start comes before all. "" if everything is
// finite. The update is skipped as it was the first time. `fill` as for Executor::run. All ranks call together, and
// each returns the first of any rank.
std::string find_bad(run::Executor& executor, comm::Communicator& all, kernels::Numbers numbers,
                     const std::function<void(const run::Executor::Inputs&)>& fill);

}  // namespace kintsugi::train
