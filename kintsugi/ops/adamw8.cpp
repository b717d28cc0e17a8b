// AdamW with moments in 8-bit codes (Dettmers et al. 2022): m and v are codes, and m_scale and v_scale their largest
// magnitudes in each block of kStateBlock elements in flat order. The output `weight` is w in the dtype of the
// attribute "weight".
#include "kintsugi/ops/adamw8.h"

#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow adamw8() {
  return {.kind = "adamw8",
          .ins = {"w", "g", "m", "v", "m_scale", "v_scale", "factor", "finite", "updates"},
          .outs = {"w", "m", "v", "m_scale", "v_scale", optional("weight")},
          .family = "optimizer",
          .infer = [](Types ins, const Attributes& a) -> OutTypes {
            OutTypes outs = {ins["w"], ins["m"], ins["v"], ins["m_scale"], ins["v_scale"]};
            if (a.has("weight")) outs.add({ins["w"].shape, tensor::dtype_from(a.text("weight"))});
            return outs;
          },
          .flops = per_element<40>,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{"w", "w"}, {"m", "m"}, {"v", "v"}, {"m_scale", "m_scale"}, {"v_scale", "v_scale"}}};
}

// Moments in bf16, rounded stochastically by random numbers of (seed, step, weight, position in the weight).
OpRow adamw16() {
  return {.kind = "adamw16",
          .ins = {"w", "g", "m", "v", "factor", "finite", "updates"},
          .outs = {"w", "m", "v", optional("weight")},
          .family = "optimizer",
          .infer = [](Types ins, const Attributes& a) -> OutTypes {
            OutTypes outs = {ins["w"], ins["m"], ins["v"]};
            if (a.has("weight")) outs.add({ins["w"].shape, tensor::dtype_from(a.text("weight"))});
            return outs;
          },
          .flops = per_element<30>,
          .flat = true,
          .keeps_zero = true,
          .by_position = true,
          .in_place = {{"w", "w"}, {"m", "m"}, {"v", "v"}}};
}

}  // namespace kintsugi::ops
