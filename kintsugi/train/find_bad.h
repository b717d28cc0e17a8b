// Locates the first non-finite value.
#pragma once

#include <functional>
#include <string>

#include "kintsugi/run/executor.h"

namespace kintsugi::train {

// Runs the list `train` once more and returns the first non-finite value, as "layer 3, forward: attention makes
// attention.0 of micro-batch 1"; weights that are non-finite at the start come before all others. "" if everything is
// finite. Skips the update, as it was skipped before. `fill` is as for Executor::run(), and returns the first
// non-finite input of the micro-batch, as "input images", or "". Collective; each rank returns the first of any rank.
std::string find_bad(run::Executor& executor, comm::Communicator& all, kernels::Numbers numbers,
                     const std::function<std::string(const run::Executor::Inputs&)>& fill);

}  // namespace kintsugi::train
