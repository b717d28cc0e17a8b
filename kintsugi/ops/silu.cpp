// Elfwing, Uchibe, Doya 2018.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow silu() {
  return unary(
      "silu",
      [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
        return {g.op("silu_grad", {op.in("x"), dy[0]}, op.attributes)};
      },
      per_element<5>);
}

OpRow silu_grad() {
  return unary_grad("silu_grad", "silu", per_element<8>);
}

}  // namespace kintsugi::ops
