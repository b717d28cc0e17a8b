// Srivastava et al. 2014. The mask is a function of (seed, key, step, index in the global batch).
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow dropout() {
  return {.kind = "dropout",
          .ins = {"x"},
          .outs = {"y"},
          .infer = like_first,
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            return {g.op("dropout", {dy[0]}, op.attributes)};
          },
          .flops = per_element<20>,
          .additive = true,
          .keeps_zero = true,
          .in_place = {{"y", "x"}}};
}

}  // namespace kintsugi::ops
