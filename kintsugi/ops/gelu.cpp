// Hendrycks, Gimpel 2016; attribute "form": tanh or erf.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow gelu() {
  return unary(
      "gelu",
      [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
        return {g.op("gelu_grad", {op.in("x"), dy[0]}, op.attributes)};
      },
      per_element<10>);
}

OpRow gelu_grad() {
  return unary_grad("gelu_grad", "gelu", per_element<16>);
}

}  // namespace kintsugi::ops
