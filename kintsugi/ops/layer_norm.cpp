// Ba, Kiros, Hinton 2016. The dims of gamma are whole, as named by the attribute "whole".
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> dy) {
  const ValueId x = op.in("x"), gamma = op.in("gamma"), beta = op.in("beta");
  OutTypes types = {g.type(x), g.gradient_type(gamma)};
  if (beta != kNone) types.add(g.gradient_type(beta));
  std::vector<ValueId> dx = g.make("layer_norm_grad", {x, gamma, dy[0]}, types, op.attributes);
  dx.resize(3, kNone);
  return dx;
}

}  // namespace

OpRow layer_norm() {
  return {.kind = "layer_norm",
          .ins = {"x", "gamma", optional("beta")},
          .outs = {"y"},
          .infer = like_first,
          .grad = grad,
          .flops = per_element<8>,
          .light = true};
}

OpRow layer_norm_grad() {
  return {.kind = "layer_norm_grad",
          .ins = {"x", "gamma", "dy"},
          .outs = {"dx", optional("dgamma"), optional("dbeta"), optional("sums")},
          .family = "layer_norm",
          .flops = per_element<16>,
          .keeps_zero = true,
          .accumulates = {"dgamma", "dbeta", "sums"}};
}

}  // namespace kintsugi::ops
