// A multilayer perceptron: layers of one width, each a matmul, a bias and an activation, then a matmul to the outputs.
// Adjacent layers alternate the names ffn and embed for their widths, so that a rule that splits ffn splits one by
// outputs and the next by inputs (Shoeybi et al. 2019, section 3). Dims: batch feature ffn embed class target.
#include <cmath>

#include "kintsugi/models/models.h"

namespace kintsugi::models {

Trunk perceptron(Builder& b) {
  Graph& g = b.graph();
  const config::Model& m = b.model();
  tensor::Dim width = {"feature", m.features};
  ValueId x = b.input("features", {b.batch(), width}, DType::f32);
  if (b.dtype() != DType::f32) x = g.op("cast", {x}, {{"dtype", std::string(name_of(b.dtype()))}});
  // He et al. 2015, section 2.2: preserves the variance of the input.
  const auto linear = [&](const std::string& name, const tensor::Dim& out, double gain) {
    const double deviation = std::sqrt(gain / static_cast<double>(width.size));
    x = b.linear(x, name, {width, out}, "batch " + out.name, deviation, m.bias_ffn);
    width = out;
  };
  for (int64_t i = 0; i < m.layers; ++i) {
    g.layer = static_cast<int>(i);
    const std::string at = "layer" + std::to_string(i);
    linear(at, i % 2 == 0 ? b.ffn() : b.embed(), 2.0);
    x = b.dropout(b.activation(x), at);
  }
  g.layer = static_cast<int>(m.layers);
  const bool classes = config::objective(m) == config::Objective::classes;
  linear("output", {classes ? "class" : "target", m.outputs}, 1.0);
  Trunk trunk;
  (classes ? trunk.classes : trunk.numbers) = x;
  return trunk;
}

}  // namespace kintsugi::models
