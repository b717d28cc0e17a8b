#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

// table [position embed] -> [seq embed]: the rows at the global indices of seq. The attribute "length" is seq's size.
OpRow position() {
  return {.kind = "position",
          .ins = {"table"},
          .outs = {"y"},
          .infer = [](Types ins, const Attributes& a) -> OutTypes {
            return {{Shape{{"seq", a.integer("length")}, ins["table"].shape[1]}, ins["table"].dtype}};
          },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            return {g.make("position_grad", {dy[0]}, {g.gradient_type(op.in("table"))})[0]};
          },
          .flops = [](Types, Types, const Attributes&) { return 0.0; },
          .whole = {"position"},
          .keeps_zero = true};
}

OpRow position_grad() {
  return {.kind = "position_grad",
          .ins = {"dy"},
          .outs = {"dtable"},
          .family = "position",
          .whole = {"position"},
          .additive = true,
          .keeps_zero = true,
          .accumulates = {"dtable"}};
}

}  // namespace kintsugi::ops
