// Reverse-mode differentiation from graph to graph (Griewank, Walther 2008, chapter 3).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kintsugi/graph/graph.h"

namespace kintsugi::graph {

struct StateGradient {
  StateId state = kNone;
  ValueId gradient = kNone;
  int layer = 0;  // of the use
};

// A value to differentiate, and its gradient, with which the backward pass begins.
struct Root {
  ValueId of = kNone, seed = kNone;
};

// Appends the backward pass of the sum of all roots to the graph. Returns one entry for each use of a weight, in the
// order in which their gradients become known; `found` is called with each as soon as it is, and may append operations
// of its own. A gradient has the dims of its value. Frozen weights have none, and nothing is computed for
// a value that depends on frozen weights alone.
using Found = std::function<void(const StateGradient&)>;
std::vector<StateGradient> differentiate(Graph& graph, std::span<const Root> roots, const Found& found = {});
std::vector<StateGradient> differentiate(Graph& graph, ValueId of, ValueId seed, const Found& found = {});

}  // namespace kintsugi::graph
