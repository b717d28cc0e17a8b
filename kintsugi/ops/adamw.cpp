// Loshchilov, Hutter 2019, algorithm 2; with the attribute "coupled_decay" Adam, where the decay is part of the
// gradient (Kingma, Ba 2015, algorithm 1). The output `weight` is w in the dtype of the attribute "weight".
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow adamw() {
  return {.kind = "adamw",
          .ins = {"w", "g", "m", "v", "factor", "finite", "updates"},
          .outs = {"w", "m", "v", optional("weight")},
          .family = "optimizer",
          .infer = [](Types ins, const Attributes& a) -> OutTypes {
            OutTypes outs = {ins["w"], ins["m"], ins["v"]};
            if (a.has("weight")) outs.add({ins["w"].shape, tensor::dtype_from(a.text("weight"))});
            return outs;
          },
          .flops = per_element<14>,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{"w", "w"}, {"m", "m"}, {"v", "v"}}};
}

}  // namespace kintsugi::ops
