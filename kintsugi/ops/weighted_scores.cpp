// Weighted sums of the log-probabilities of a sample's labels, and their gradient.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

// lse, target, labels, weights: [batch seq] -> score: [batch] fp64
OpRow weighted_scores() {
  return {.kind = "weighted_scores",
          .ins = {"lse", "target", "labels", "weights"},
          .outs = {"score"},
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            return {{without(ins["labels"].shape, "seq"), DType::f64}};
          },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> douts) -> std::vector<ValueId> {
            std::vector<ValueId> dx = g.make("weighted_scores_grad", {op.in("labels"), op.in("weights"), douts[0]},
                                             {g.type(op.in("lse")), g.type(op.in("target"))});
            dx.insert(dx.end(), {kNone, kNone});  // for labels and weights
            return dx;
          },
          .flops = [](Types ins, Types, const Attributes&) { return 3.0 * elements(ins); },
          .keeps_zero = true};
}

OpRow weighted_scores_grad() {
  return {.kind = "weighted_scores_grad",
          .ins = {"labels", "weights", "dscore"},
          .outs = {"dlse", "dtarget"},
          .family = "weighted_scores",
          .keeps_zero = true};
}

}  // namespace kintsugi::ops
