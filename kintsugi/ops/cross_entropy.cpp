// lse [batch seq], target [batch seq], labels [batch seq] -> the sum of losses and the number of counted positions, []
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow cross_entropy() {
  return {.kind = "cross_entropy",
          .ins = {"lse", "target", "labels"},
          .outs = {"loss", "count"},
          .infer = [](Types, const Attributes&) -> OutTypes {
            return {scalar(), scalar()};
          },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> douts) -> std::vector<ValueId> {
            std::vector<ValueId> dx = g.make("cross_entropy_grad", {op.in("labels"), douts[0]},
                                             {g.type(op.in("lse")), g.type(op.in("target"))});
            dx.push_back(kNone);  // for labels
            return dx;
          },
          .flops = [](Types ins, Types, const Attributes&) { return 2.0 * elements(ins); },
          .keeps_zero = true,
          .accumulates = {"loss", "count"}};
}

OpRow cross_entropy_grad() {
  return {.kind = "cross_entropy_grad",
          .ins = {"labels", "dloss"},
          .outs = {"dlse", "dtarget"},
          .family = "cross_entropy",
          .keeps_zero = true};
}

}  // namespace kintsugi::ops
