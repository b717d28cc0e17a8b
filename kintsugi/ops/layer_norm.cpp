// Ba, Kiros, Hinton 2016. The dims of gamma are whole, said by the attribute "whole".
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

// x, gamma, [beta] -> y
std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> dy) {
  std::vector<Type> types = {g.type(op.ins[0])};
  for (size_t i = 1; i < op.ins.size(); ++i) types.push_back(g.gradient_type(op.ins[i]));
  return g.make("layer_norm_grad", {op.ins[0], op.ins[1], dy[0]}, types, op.attributes);
}

}  // namespace

OpRow layer_norm() {
  return {.kind = "layer_norm", .infer = like_first, .grad = grad, .flops = per_element<8>};
}

OpRow layer_norm_grad() {
  return {.kind = "layer_norm_grad",
          .family = "layer_norm",
          .flops = per_element<16>,
          .keeps_zero = true,
          .accumulates = 0b110};
}

}  // namespace kintsugi::ops
