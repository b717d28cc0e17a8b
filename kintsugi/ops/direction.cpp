// Updates in two parts: an operation computes a direction u from the gradient, and `apply_direction` moves the weight,
// scaled by norms of the entire weight (LAMB: You et al. 2020, algorithm 2; Adafactor: Shazeer, Stern 2018, algorithm
// 4) or by nothing. LARS (You, Gitman, Ginsburg 2017, algorithm 1) needs the norms before its momentum.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

OutTypes with_weight(OutTypes outs, Types ins, const Attributes& a) {
  if (a.has("weight")) outs.add({ins["w"].shape, tensor::dtype_from(a.text("weight"))});
  return outs;
}

}  // namespace

OpRow adam_direction() {
  return {.kind = "adam_direction",
          .ins = {"w", "g", "m", "v", "factor", "finite", "updates"},
          .outs = {"m", "v", "u"},
          .family = "optimizer",
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            return {ins["m"], ins["v"], ins["m"]};
          },
          .flops = per_element<13>,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{"m", "m"}, {"v", "v"}}};
}

OpRow apply_direction() {
  return {.kind = "apply_direction",
          .ins = {"w", "u", "finite", optional("w_squares"), optional("u_squares")},
          .outs = {"w", optional("weight")},
          .family = "optimizer",
          .infer = [](Types ins, const Attributes& a) { return with_weight({ins["w"]}, ins, a); },
          .flops = per_element<4>,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{"w", "w"}}};
}

OpRow lars() {
  return {.kind = "lars",
          .ins = {"w", "g", "m", "factor", "finite", optional("w_squares"), optional("g_squares")},
          .outs = {"w", "m", optional("weight")},
          .family = "optimizer",
          .infer =
              [](Types ins, const Attributes& a) {
                return with_weight({ins["w"], ins["m"]}, ins, a);
              },
          .flops = per_element<7>,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{"w", "w"}, {"m", "m"}}};
}

}  // namespace kintsugi::ops
