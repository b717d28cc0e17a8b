// Zeiler 2012, algorithm 1, with a learning rate as factor of its step. The output `weight` is w in the dtype of the
// attribute "weight".
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow adadelta() {
  return {.kind = "adadelta",
          .ins = {"w", "g", "v", "d", "factor", "finite"},
          .outs = {"w", "v", "d", optional("weight")},
          .family = "optimizer",
          .infer = [](Types ins, const Attributes& a) -> OutTypes {
            OutTypes outs = {ins["w"], ins["v"], ins["d"]};
            if (a.has("weight")) outs.add({ins["w"].shape, tensor::dtype_from(a.text("weight"))});
            return outs;
          },
          .flops = per_element<16>,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{"w", "w"}, {"v", "v"}, {"d", "d"}}};
}

}  // namespace kintsugi::ops
