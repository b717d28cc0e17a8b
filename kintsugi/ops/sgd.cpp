// Gradient descent with momentum (Sutskever et al. 2013, section 2, without look-ahead). w, g, m, factor, finite ->
// w, m, [weight of dtype "weight"]
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow sgd() {
  return {.kind = "sgd",
          .family = "optimizer",
          .infer = [](Types ins, const Attributes& a) -> std::vector<Type> {
            std::vector<Type> outs = {ins[0], ins[2]};
            if (a.has("weight")) outs.push_back({ins[0].shape, tensor::dtype_from(a.text("weight"))});
            return outs;
          },
          .flops = per_element<6>,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{0, 0}, {1, 2}}};
}

}  // namespace kintsugi::ops
