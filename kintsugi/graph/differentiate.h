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
  int layer = 0;  // of this use
};

// A value to differentiate, and the gradient that seeds its backward pass.
struct Root {
  ValueId of = kNone, seed = kNone;
};

// Appends the backward pass of the sum of all roots to the graph. Returns one entry per use of a weight, in the order
// in which their gradients become known, and calls `found` with each at that point; `found` may append operations. A
// gradient has the dims of its value. Frozen weights have no gradient, and nothing is computed for values that depend
// only on frozen weights.
using Found = std::function<void(const StateGradient&)>;
std::vector<StateGradient> differentiate(Graph& graph, std::span<const Root> roots, const Found& found = {});
std::vector<StateGradient> differentiate(Graph& graph, ValueId of, ValueId seed, const Found& found = {});

}  // namespace kintsugi::graph
