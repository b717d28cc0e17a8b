// The clamped gate of gpt-oss (OpenAI 2025, the published code): g sigmoid(slope g) (u + 1), where g = min(gate, clamp)
// and u is up between -clamp and clamp.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow clamped_gated() {
  return {.kind = "clamped_gated",
          .ins = {"gate", "up"},
          .outs = {"y"},
          .infer = like_first,
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            const ValueId gate = op.in("gate"), up = op.in("up");
            return g.make("clamped_gated_grad", {gate, up, dy[0]}, {g.type(gate), g.type(up)}, op.attributes);
          },
          .flops = per_element<9>,
          .flat = true,
          .keeps_zero = true,
          .light = true};
}

OpRow clamped_gated_grad() {
  return {.kind = "clamped_gated_grad",
          .ins = {"gate", "up", "dy"},
          .outs = {"dgate", "dup"},
          .family = "clamped_gated",
          .flops = per_element<14>,
          .flat = true,
          .keeps_zero = true};
}

}  // namespace kintsugi::ops
