// lse [batch seq], target [batch seq], labels [batch seq] -> the sum of losses and the number of counted positions, []
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow cross_entropy() {
  return {.kind = "cross_entropy",
          .infer = [](Types, const Attributes&) -> std::vector<Type> {
            return {scalar(), scalar()};
          },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> douts) -> std::vector<ValueId> {
            std::vector<ValueId> dx =
                g.make("cross_entropy_grad", {op.ins[2], douts[0]}, {g.type(op.ins[0]), g.type(op.ins[1])});
            dx.push_back(kNone);
            return dx;
          },
          .flops = [](Types ins, Types, const Attributes&) { return 2.0 * elements(ins); },
          .keeps_zero = true,
          .accumulates = 0b11};
}

OpRow cross_entropy_grad() {
  return {.kind = "cross_entropy_grad", .family = "cross_entropy", .keeps_zero = true};
}

}  // namespace kintsugi::ops
