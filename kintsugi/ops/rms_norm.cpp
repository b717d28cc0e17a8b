// Zhang, Sennrich 2019. The dims of gamma are the last of x, one or several, and whole, as named by the attribute
// "whole".
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> dy) {
  const ValueId x = op.in("x"), gamma = op.in("gamma");
  return g.make("rms_norm_grad", {x, gamma, dy[0]}, {g.type(x), g.gradient_type(gamma)}, op.attributes);
}

}  // namespace

OpRow rms_norm() {
  return {.kind = "rms_norm",
          .ins = {"x", "gamma"},
          .outs = {"y"},
          .infer = like_first,
          .grad = grad,
          .flops = per_element<5>,
          .keeps_zero = true,
          .light = true};
}

OpRow rms_norm_grad() {
  return {.kind = "rms_norm_grad",
          .ins = {"x", "gamma", "dy"},
          .outs = {"dx", optional("dgamma")},
          .family = "rms_norm",
          .flops = per_element<11>,
          .keeps_zero = true,
          .accumulates = {"dgamma"}};
}

}  // namespace kintsugi::ops
