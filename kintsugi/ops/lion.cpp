// Chen et al. 2023, algorithm 2: the sign of a mean of gradients. The output `weight` is w in the dtype of the
// attribute "weight".
#include "kintsugi/ops/lion.h"

#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow lion() {
  return {.kind = "lion",
          .ins = {"w", "g", "m", "factor", "finite"},
          .outs = {"w", "m", optional("weight")},
          .family = "optimizer",
          .infer = [](Types ins, const Attributes& a) -> OutTypes {
            OutTypes outs = {ins["w"], ins["m"]};
            if (a.has("weight")) outs.add({ins["w"].shape, tensor::dtype_from(a.text("weight"))});
            return outs;
          },
          .flops = per_element<9>,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{"w", "w"}, {"m", "m"}}};
}

}  // namespace kintsugi::ops
