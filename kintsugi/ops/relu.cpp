#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow relu() {
  return unary(
      "relu",
      [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
        // The gradient reads y, which is positive where x is: x need not be kept.
        return {g.op("relu_grad", {op.outs[0], dy[0]}, op.attributes)};
      },
      per_element<1>);
}

OpRow relu_grad() {
  return unary_grad("relu_grad", "relu", per_element<1>);
}

}  // namespace kintsugi::ops
