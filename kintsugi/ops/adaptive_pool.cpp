// x [samples spatial... channels] -> y with the same dims in other sizes: for a dim of `in` positions and `out`
// outputs, output o is the mean of positions floor(o * in / out) to ceil((o + 1) * in / out), exclusive. The spatial
// dims are whole, as named by the attribute "whole"; the sizes of y are given.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow adaptive_pool() {
  return {.kind = "adaptive_pool",
          .ins = {"x"},
          .outs = {"y"},
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            return {g.make("adaptive_pool_grad", {dy[0]}, {g.type(op.in("x"))}, op.attributes)[0]};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 2.0 * elements(ins); },
          .additive = true,
          .keeps_zero = true,
          .light = true};
}

OpRow adaptive_pool_grad() {
  return {.kind = "adaptive_pool_grad",
          .ins = {"dy"},
          .outs = {"dx"},
          .family = "adaptive_pool",
          .flops = [](Types, Types outs, const Attributes&) { return 2.0 * elements(outs); },
          .additive = true,
          .keeps_zero = true};
}

}  // namespace kintsugi::ops
