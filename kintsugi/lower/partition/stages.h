// Which layers each stage of the pipeline holds.
#pragma once

#include <span>
#include <vector>

#include "kintsugi/graph/graph.h"
#include "kintsugi/plan/plan.h"

namespace kintsugi::lower {

// The layers of a model cut into stages x chunks neighbouring chunks; chunk g is on stage g % stages. The embedding
// (layer -1) goes with the first layer, the head (the number of layers) with the last.
struct Stages {
  int stages = 1;
  std::vector<int> last = {};  // of each chunk, its last layer; empty: one chunk of all

  int chunks() const { return last.empty() ? 1 : static_cast<int>(last.size()); }
  int chunk(int layer) const;
  int stage(int layer) const { return chunk(layer) % stages; }
};

// What cut_layers balances: the flops of each of so many layers, the embedding's and the head's with the first and the
// last.
std::vector<double> layer_flops(const graph::Graph& graph, int layers);

// The last layer of each of n neighbouring parts, such that the most expensive part is as cheap as possible.
std::vector<int> balanced(const std::vector<double>& flops, int n);

// As the plan lists them, or so that the most expensive chunk is as cheap as possible, by the flops of the graphs'
// operations. UserError if there are more chunks than layers, or a list loses or repeats a layer.
Stages cut_layers(const plan::Plan& plan, std::span<const graph::Graph* const> graphs);

}  // namespace kintsugi::lower
