// activation(gate) * up (Shazeer 2020, "GLU variants"). With counts, [batch expert], gate and up have slots, and only
// those in use are computed; the row is flat without counts.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow gated() {
  return {.kind = "gated",
          .ins = {"gate", "up", optional("counts")},
          .outs = {"y"},
          .infer = like_first,
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            const ValueId gate = op.in("gate"), up = op.in("up");
            std::vector<ValueId> d =
                g.make("gated_grad", {gate, up, dy[0], op.in("counts")}, {g.type(gate), g.type(up)}, op.attributes);
            return {d[0], d[1], kNone};
          },
          .flops = per_filled<6>,
          .flat = true,
          .keeps_zero = true,
          .light = true};
}

OpRow gated_grad() {
  return {.kind = "gated_grad",
          .ins = {"gate", "up", "dy", optional("counts")},
          .outs = {"dgate", "dup"},
          .family = "gated",
          .flops = per_filled<10>,
          .flat = true,
          .keeps_zero = true};
}

}  // namespace kintsugi::ops
