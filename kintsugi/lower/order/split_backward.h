// Splits the backward pass in two parts, for schedules that run them separately.
#pragma once

#include "kintsugi/graph/graph.h"

namespace kintsugi::lower {

// The micro-batch graph in which operations that only contribute to weight gradients have phase weight, including their
// accumulation (Qi et al. 2023, section 2: B and W) and later operations on a weight's gradient (a cast, a sum).
graph::Graph split_backward(const graph::Graph& micro);

}  // namespace kintsugi::lower
