#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow sum() {
  return {.kind = "sum",
          .ins = {"x"},
          .outs = {"y"},
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            return {g.make("broadcast", {dy[0]}, {g.type(op.ins[0])})[0]};
          },
          .flops = [](Types ins, Types, const Attributes&) { return elements(ins); },
          .additive = true,
          .keeps_zero = true,
          .accumulates = {"y"},
          .narrows = {"y"}};
}

}  // namespace kintsugi::ops
