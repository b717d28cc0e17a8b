// Gradient descent with momentum (Sutskever et al. 2013, section 2), with the attribute "nesterov" with look-ahead. The
// output `weight` is w in the dtype of the attribute "weight".
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow sgd() {
  return {.kind = "sgd",
          .ins = {"w", "g", "m", "factor", "finite"},
          .outs = {"w", "m", optional("weight")},
          .family = "optimizer",
          .infer = [](Types ins, const Attributes& a) -> OutTypes {
            OutTypes outs = {ins["w"], ins["m"]};
            if (a.has("weight")) outs.add({ins["w"].shape, tensor::dtype_from(a.text("weight"))});
            return outs;
          },
          .flops = per_element<6>,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{"w", "w"}, {"m", "m"}}};
}

}  // namespace kintsugi::ops
