// The clamped gate of gpt-oss (OpenAI 2025, the published code): g sigmoid(slope g) (u + 1), where g = min(gate, clamp)
// and u is up between -clamp and clamp. Counts as of `gated`.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow clamped_gated() {
  return {.kind = "clamped_gated",
          .ins = {"gate", "up", optional("counts")},
          .outs = {"y"},
          .infer = like_first,
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            const ValueId gate = op.in("gate"), up = op.in("up");
            std::vector<ValueId> d = g.make("clamped_gated_grad", {gate, up, dy[0], op.in("counts")},
                                            {g.type(gate), g.type(up)}, op.attributes);
            return {d[0], d[1], kNone};
          },
          .flops = per_filled<9>,
          .flat = true,
          .keeps_zero = true,
          .light = true};
}

OpRow clamped_gated_grad() {
  return {.kind = "clamped_gated_grad",
          .ins = {"gate", "up", "dy", optional("counts")},
          .outs = {"dgate", "dup"},
          .family = "clamped_gated",
          .flops = per_filled<14>,
          .flat = true,
          .keeps_zero = true};
}

}  // namespace kintsugi::ops
