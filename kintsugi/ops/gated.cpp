// activation(gate) * up (Shazeer 2020, "GLU variants").
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow gated() {
  return {.kind = "gated",
          .ins = {"gate", "up"},
          .outs = {"y"},
          .infer = like_first,
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            const ValueId gate = op.in("gate"), up = op.in("up");
            return g.make("gated_grad", {gate, up, dy[0]}, {g.type(gate), g.type(up)}, op.attributes);
          },
          .flops = per_element<6>,
          .flat = true,
          .keeps_zero = true,
          .light = true};
}

OpRow gated_grad() {
  return {.kind = "gated_grad",
          .ins = {"gate", "up", "dy"},
          .outs = {"dgate", "dup"},
          .family = "gated",
          .flops = per_element<10>,
          .flat = true,
          .keeps_zero = true};
}

}  // namespace kintsugi::ops
