// Loshchilov, Hutter 2019, algorithm 2. w, g, m, v, factor, finite, updates -> w, m, v, [weight of dtype "weight"]
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow adamw() {
  return {.kind = "adamw",
          .family = "optimizer",
          .infer = [](Types ins, const Attributes& a) -> std::vector<Type> {
            std::vector<Type> outs = {ins[0], ins[2], ins[3]};
            if (a.has("weight")) outs.push_back({ins[0].shape, tensor::dtype_from(a.text("weight"))});
            return outs;
          },
          .flops = per_element<14>,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{0, 0}, {1, 2}, {2, 3}}};
}

}  // namespace kintsugi::ops
