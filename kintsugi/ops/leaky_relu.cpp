// Maas, Hannun, Ng 2013: x if positive, else the attribute "slope" times x.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow leaky_relu() {
  return unary(
      "leaky_relu",
      [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
        return {g.op("leaky_relu_grad", {op.in("x"), dy[0]}, op.attributes)};
      },
      per_element<2>);
}

OpRow leaky_relu_grad() {
  return unary_grad("leaky_relu_grad", "leaky_relu", per_element<2>);
}

}  // namespace kintsugi::ops
