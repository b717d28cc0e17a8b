// The backward pass in two parts, for schedules that do them apart.
#pragma once

#include "kintsugi/graph/graph.h"

namespace kintsugi::lower {

// The micro-batch graph in which what only makes gradients of weights is of phase weight, together with its addition to
// an accumulator (Qi et al. 2023, section 2: B and W). What a weight's gradient passes through on its way (a cast, a
// sum) goes with it.
graph::Graph split_backward(const graph::Graph& micro);

}  // namespace kintsugi::lower
