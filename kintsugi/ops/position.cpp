#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

// table [position embed] -> [seq embed]: the rows at the global indices of seq. The attribute "length" is seq's size.
OpRow position() {
  return {.kind = "position",
          .infer = [](Types ins, const Attributes& a) -> std::vector<Type> {
            return {{Shape{{"seq", a.integer("length")}, ins[0].shape[1]}, ins[0].dtype}};
          },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            return {g.make("position_grad", {dy[0]}, {g.gradient_type(op.ins[0])})[0]};
          },
          .flops = [](Types, Types, const Attributes&) { return 0.0; },
          .whole = {"position"},
          .keeps_zero = true};
}

OpRow position_grad() {
  return {.kind = "position_grad",
          .family = "position",
          .whole = {"position"},
          .additive = true,
          .keeps_zero = true,
          .accumulates = 1};
}

}  // namespace kintsugi::ops
