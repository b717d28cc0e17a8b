// The loss of preferences (Rafailov et al. 2023, "Direct preference optimization", equation 7), per pair of answers.
// With the margin log p(chosen) - log p(rejected) of the model and of the reference, in fp64:
//   reward = beta (margin - reference), loss = -log sigmoid(reward)
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

// margin, reference: [batch] fp64 -> sums over pairs of the loss, of 1, of whether the reward is positive, and of the
// reward, []. A pair whose reference is NaN is not counted.
OpRow preference_loss() {
  return {.kind = "preference_loss",
          .ins = {"margin", "reference"},
          .outs = {"loss", "count", "correct", "reward"},
          .infer = [](Types, const Attributes&) -> OutTypes {
            return {scalar(), scalar(), scalar(), scalar()};
          },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> douts) -> std::vector<ValueId> {
            const ValueId margin = op.in("margin"), reference = op.in("reference");
            std::vector<ValueId> dx =
                g.make("preference_loss_grad", {margin, reference, douts[0]}, {g.type(margin)}, op.attributes);
            dx.push_back(kNone);  // for the reference
            return dx;
          },
          .flops = [](Types ins, Types, const Attributes&) { return 8.0 * elements(ins); },
          .keeps_zero = true,
          .accumulates = {"loss", "count", "correct", "reward"}};
}

OpRow preference_loss_grad() {
  return {.kind = "preference_loss_grad",
          .ins = {"margin", "reference", "dloss"},
          .outs = {"dmargin"},
          .family = "preference_loss",
          .flops = [](Types ins, Types, const Attributes&) { return 5.0 * elements(ins); },
          .keeps_zero = true};
}

}  // namespace kintsugi::ops
