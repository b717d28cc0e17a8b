// The square of relu (So et al. 2021, "Primer", section 4).
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow relu2() {
  return unary(
      "relu2",
      [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
        return {g.op("relu2_grad", {op.in("x"), dy[0]}, op.attributes)};
      },
      per_element<2>);
}

OpRow relu2_grad() {
  return unary_grad("relu2_grad", "relu2", per_element<3>);
}

}  // namespace kintsugi::ops
