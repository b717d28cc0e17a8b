// Recomputation: values of the forward pass that the backward pass reads are computed again there instead of being
// kept (Chen et al. 2016; the core of attention alone: Korthikanti et al. 2022, section 5).
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/graph/graph.h"

namespace kintsugi::lower {

struct Recompute {
  // light: norms and activations, passes over memory. selective: attention and its outputs, from query, key and value.
  // full: everything of a layer but its input.
  enum class What { none, light, selective, full };
  What what = What::none;
  int64_t every = 1;  // only layers whose number it divides: 0, every, 2 * every ...
};

// The micro-batch after differentiation, with forward operations of recomputed layers repeated in the backward pass:
// the same operations with the same attributes, and so the same values bit for bit, dropout masks included. Unused
// ones are left out. States and free values are read as before; values that another layer reads, and those that depend
// on a state that the graph writes, are kept. The embedding (layer -1) and the head (layer `layers`) are never
// recomputed.
//
// The repeated operations of a layer are contiguous, in the order of the forward pass: with `full` before the layer's
// backward pass, so that they do not wait for the gradient that is still being received; else before the first
// operation that reads them.
graph::Graph recompute(graph::Graph micro, const Recompute& how, int layers);

// Values that are live from the forward to the backward pass: those made by the former and read by the latter, in the
// order in which they are made. Without states and free values; a view is replaced by the value that it is a view of.
std::vector<graph::ValueId> kept(const graph::Graph& micro);

}  // namespace kintsugi::lower
