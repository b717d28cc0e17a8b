// Splits the backward pass into two parts, for schedules that run them separately.
#pragma once

#include "kintsugi/graph/graph.h"

namespace kintsugi::lower {

// The micro-batch graph in which operations that only serve the gradients of weights are of phase weight, together
// with their addition to an accumulator (Qi et al. 2023, section 2: B and W). Later operations on a weight's gradient
// (a cast, a sum) are included.
graph::Graph split_backward(const graph::Graph& micro);

}  // namespace kintsugi::lower
