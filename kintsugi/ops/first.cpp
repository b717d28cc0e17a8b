// x [batch seq embed] -> [batch embed]: the position with global index 0 of seq, which one part of seq has; the others
// give zeros.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow first() {
  return {.kind = "first",
          .ins = {"x"},
          .outs = {"y"},
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            return {{without(ins[0].shape, "seq"), ins[0].dtype}};
          },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            return {g.make("first_grad", {dy[0]}, {g.type(op.in("x"))})[0]};
          },
          .flops = [](Types, Types, const Attributes&) { return 0.0; },
          .additive = true,
          .keeps_zero = true};
}

// dy [batch embed] -> dx [batch seq embed]: zero except at position 0
OpRow first_grad() {
  return {.kind = "first_grad",
          .ins = {"dy"},
          .outs = {"dx"},
          .family = "first",
          .flops = [](Types, Types, const Attributes&) { return 0.0; },
          .additive = true,
          .keeps_zero = true};
}

}  // namespace kintsugi::ops
