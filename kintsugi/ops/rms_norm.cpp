// Zhang, Sennrich 2019. The dims of gamma are whole, said by the attribute "whole".
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> dy) {
  return g.make("rms_norm_grad", {op.ins[0], op.ins[1], dy[0]}, {g.type(op.ins[0]), g.gradient_type(op.ins[1])},
                op.attributes);
}

}  // namespace

OpRow rms_norm() {
  return {.kind = "rms_norm", .infer = like_first, .grad = grad, .flops = per_element<5>, .keeps_zero = true};
}

OpRow rms_norm_grad() {
  return {
      .kind = "rms_norm_grad", .family = "rms_norm", .flops = per_element<11>, .keeps_zero = true, .accumulates = 0b10};
}

}  // namespace kintsugi::ops
