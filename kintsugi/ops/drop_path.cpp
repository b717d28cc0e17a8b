// Huang et al. 2016, "Deep networks with stochastic depth": dropout of whole samples. The mask is a function of (seed,
// key, step, index in the global batch).
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow drop_path() {
  return {.kind = "drop_path",
          .ins = {"x"},
          .outs = {"y"},
          .infer = like_first,
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            return {g.op("drop_path", {dy[0]}, op.attributes)};
          },
          .flops = per_element<1>,
          .additive = true,
          .keeps_zero = true,
          .in_place = {{"y", "x"}}};
}

}  // namespace kintsugi::ops
