// The same memory with other dims, whose sizes are given. The attribute "whole" names those that only one side has;
// common dims are in the same order.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow reshape() {
  return {.kind = "reshape",
          .ins = {"x"},
          .outs = {"y"},
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            return {g.make("reshape", {dy[0]}, {g.type(op.in("x"))}, op.attributes)[0]};
          },
          .flops = [](Types, Types, const Attributes&) { return 0.0; },
          .additive = true,
          .keeps_zero = true,
          .view = true};
}

}  // namespace kintsugi::ops
