// Reverse-mode differentiation from graph to graph (Griewank, Walther 2008, chapter 3).
#pragma once

#include <functional>
#include <vector>

#include "kintsugi/graph/graph.h"

namespace kintsugi::graph {

struct StateGradient {
  StateId state = kNone;
  ValueId gradient = kNone;
  int layer = 0;  // of the use
};

// Appends the backward pass of `of` to the graph, beginning with `seed`, the gradient of `of`. Returns one entry for
// each use of a weight, in the order in which their gradients become known; `found` is called with each as soon as it
// is, and may append operations of its own. A gradient has the dims of its value. Frozen weights have none, and nothing
// is computed for a value that depends on frozen weights alone.
using Found = std::function<void(const StateGradient&)>;
std::vector<StateGradient> differentiate(Graph& graph, ValueId of, ValueId seed, const Found& found = {});

}  // namespace kintsugi::graph
