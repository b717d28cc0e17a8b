#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow tanh() {
  return unary(
      "tanh",
      [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
        return {g.op("tanh_grad", {op.in("x"), dy[0]}, op.attributes)};
      },
      per_element<10>);
}

OpRow tanh_grad() {
  return unary_grad("tanh_grad", "tanh", per_element<12>);
}

}  // namespace kintsugi::ops
