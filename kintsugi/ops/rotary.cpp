// Rotary position embedding (Su et al. 2021, section 3.2.2). Its gradient is the inverse rotation.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow rotary() {
  return {.kind = "rotary",
          .ins = {"x"},
          .outs = {"y"},
          .infer = like_first,
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            Attributes attributes = op.attributes;
            attributes.set("inverse", 1 - attributes.integer_or("inverse", 0));
            return {g.op("rotary", {dy[0]}, attributes)};
          },
          .flops = per_element<3>,
          .whole = {"head_dim"},
          .additive = true,
          .keeps_zero = true,
          .in_place = {{"y", "x"}}};
}

}  // namespace kintsugi::ops
