// Memory for time: what the backward pass reads of the forward pass is computed there again instead of being kept (Chen
// et al. 2016; the core of attention alone: Korthikanti et al. 2022, section 5).
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/graph/graph.h"

namespace kintsugi::lower {

struct Recompute {
  // selective: attention and what it makes, from query, key and value. full: everything of a layer but its input.
  enum class What { none, selective, full };
  What what = What::none;
  int64_t every = 1;  // only layers whose number it divides: 0, every, 2 * every ...
};

// The micro-batch after differentiation, with forward operations of recomputed layers once more in the backward pass:
// the same operations with the same attributes, and so the same values bit for bit, masks of dropout too. Those that
// nothing needs are left out. States and free values are read as before; what another layer reads, and what follows
// from a state that the graph writes, is kept. The embedding (layer -1) and the head (layer `layers`) are never
// recomputed.
//
// The repeated operations of a layer stand together, in the order of the forward pass: with `full` in front of the
// layer's backward pass, so that they do not wait for the gradient that is still on its way to it; with `selective` in
// front of the first operation that reads them.
graph::Graph recompute(const graph::Graph& micro, const Recompute& how, int layers);

// What lives from the forward to the backward pass: values that the one makes and the other reads, in the order in
// which they are made. States and free values aside; a view stands for what it is a view of.
std::vector<graph::ValueId> kept(const graph::Graph& micro);

}  // namespace kintsugi::lower
