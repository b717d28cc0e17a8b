// NaN and infinity in what a model computes.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include "kintsugi/checkpoint/tensor_source.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::evaluate {

// Throws UserError "[where] WHAT are NaN or infinity: ..." that names the first weight with such an element and counts
// them, or says that all weights are finite. Call on all ranks; `all` null: one rank.
[[noreturn]] void fail_not_finite(std::string_view where, std::string_view what, const run::Executor& executor,
                                  comm::Communicator* all);

// After weights were loaded from `source`: throws UserError on all ranks, naming the first weight and the number of its
// elements, if elements are NaN or infinite in a type of smaller range than the stored one.
void require_finite_weights(const run::Executor& executor, const checkpoint::TensorSource& source,
                            comm::Communicator& all);

// Fails so unless all values, the same on every rank, are finite.
template <typename T>
void require_finite(std::string_view where, std::string_view what, std::span<const T> values,
                    const run::Executor& executor, comm::Communicator* all) {
  for (const T x : values)
    if (!std::isfinite(x)) fail_not_finite(where, what, executor, all);
}

}  // namespace kintsugi::evaluate
