#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow scale() {
  return {.kind = "scale",
          .ins = {"x"},
          .outs = {"y"},
          .infer = like_first,
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            return {g.scale(dy[0], op.attributes.number("by"))};
          },
          .additive = true,
          .flat = true,
          .keeps_zero = true,
          .in_place = {{"y", "x"}}};
}

}  // namespace kintsugi::ops
