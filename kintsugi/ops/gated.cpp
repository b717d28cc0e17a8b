// activation(gate) * up (Shazeer 2020, "GLU variants").
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow gated() {
  return {.kind = "gated",
          .infer = like_first,
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            return g.make("gated_grad", {op.ins[0], op.ins[1], dy[0]}, {g.type(op.ins[0]), g.type(op.ins[1])},
                          op.attributes);
          },
          .flops = per_element<6>,
          .flat = true,
          .keeps_zero = true};
}

OpRow gated_grad() {
  return {.kind = "gated_grad", .family = "gated", .flops = per_element<10>, .flat = true, .keeps_zero = true};
}

}  // namespace kintsugi::ops
