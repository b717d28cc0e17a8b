// Assignment of layers to pipeline stages.
#pragma once

#include <span>
#include <vector>

#include "kintsugi/graph/graph.h"
#include "kintsugi/plan/plan.h"

namespace kintsugi::lower {

// The layers of a model cut into stages x chunks contiguous chunks; chunk g is on stage g % stages. The embedding
// (layer -1) belongs to the first layer's chunk, the head (the number of layers) to the last.
struct Stages {
  int stages = 1;
  std::vector<int> last = {};  // [chunk]: its last layer; empty: a single chunk

  int chunks() const { return last.empty() ? 1 : static_cast<int>(last.size()); }
  int chunk(int layer) const;
  int stage(int layer) const { return chunk(layer) % stages; }
};

// The costs that cut_layers() balances: the flops of each layer, including the embedding's in the first and the head's
// in the last.
std::vector<double> layer_flops(const graph::Graph& graph, int layers);

// The last layer of each of n contiguous parts that minimize the cost of the most expensive part.
std::vector<int> balanced(const std::vector<double>& flops, int n);

// As listed in the plan, or minimizing the cost of the most expensive chunk, by the flops of the graphs' operations.
// Throws UserError if there are more chunks than layers, or a list omits or repeats a layer.
Stages cut_layers(const plan::Plan& plan, std::span<const graph::Graph* const> graphs);

}  // namespace kintsugi::lower
