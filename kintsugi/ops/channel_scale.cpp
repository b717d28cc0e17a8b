// y = x * gamma along the last dim ("LayerScale"; Touvron et al. 2021, section 2).
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow channel_scale() {
  return {.kind = "channel_scale",
          .ins = {"x", "gamma"},
          .outs = {"y"},
          .infer = like_first,
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            const ValueId x = op.in("x"), gamma = op.in("gamma");
            const ValueId dx = g.op("channel_scale", {dy[0], gamma}, op.attributes);
            return {dx, g.make("channel_scale_sums", {x, dy[0]}, {g.gradient_type(gamma)}, op.attributes)[0]};
          },
          .flops = per_element<1>,
          .linear = true,
          .keeps_zero = true,
          .in_place = {{"y", "x"}},
          .light = true};
}

OpRow channel_scale_sums() {
  return {.kind = "channel_scale_sums",
          .ins = {"x", "dy"},
          .outs = {"dgamma"},
          .family = "channel_scale",
          .flops = [](Types ins, Types, const Attributes&) { return 2.0 * elements(ins); },
          .linear = true,
          .keeps_zero = true,
          .accumulates = {"dgamma"}};
}

}  // namespace kintsugi::ops
