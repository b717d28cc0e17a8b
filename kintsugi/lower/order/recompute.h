// Recomputation: values of the forward pass that the backward pass reads are recomputed there instead of being kept
// (Chen et al. 2016; only the core of attention: Korthikanti et al. 2022, section 5).
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/graph/graph.h"

namespace kintsugi::lower {

struct Recompute {
  // light: norms and activations, which are memory-bound. selective: attention and its outputs, from query, key and
  // value. full: everything in a layer, from its input.
  enum class What { none, light, selective, full };
  What what = What::none;
  int64_t every = 1;  // only every n-th layer: 0, every, 2 * every ...
};

// The micro-batch after differentiation, with forward operations of recomputed layers repeated in the backward pass:
// the same operations with the same attributes, and thus bit-identical values, including dropout masks. Unused ones are
// omitted. States and free values are read as before; values that another layer reads, and those that depend on a state
// that the graph writes, are kept. The embedding (layer -1) and the head (layer `layers`) are never recomputed.
//
// The repeated operations of a layer are contiguous, in forward order: with `full` before the layer's backward pass, so
// that they do not wait for a gradient that is still being received; else before the first operation that reads them.
graph::Graph recompute(graph::Graph micro, const Recompute& how, int layers);

// Values that are live from the forward to the backward pass, in the order in which they are produced. Excludes states
// and free values; a view is replaced by the value that it views.
std::vector<graph::ValueId> kept(const graph::Graph& micro);

}  // namespace kintsugi::lower
