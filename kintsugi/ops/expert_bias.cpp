// Biases of experts, added to filled slots only, so that slots without a token stay zero.
// x, dy: [batch expert slot wide], bias, dbias: [expert wide], counts: [batch expert]; the last dim has any name
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow expert_bias() {
  return {.kind = "expert_bias",
          .ins = {"x", "bias", "counts"},
          .outs = {"y"},
          .infer = like_first,
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            const Type type = g.gradient_type(op.in("bias"));
            return {dy[0], g.make("expert_bias_grad", {dy[0], op.in("counts")}, {type}, op.attributes)[0], kNone};
          },
          .flops = per_element<1>,
          .keeps_zero = true,
          .in_place = {{"y", "x"}}};
}

OpRow expert_bias_grad() {
  return {.kind = "expert_bias_grad",
          .ins = {"dy", "counts"},
          .outs = {"dbias"},
          .family = "expert_bias",
          .flops = [](Types ins, Types, const Attributes&) { return elements(ins); },
          .keeps_zero = true,
          .accumulates = {"dbias"}};
}

}  // namespace kintsugi::ops
