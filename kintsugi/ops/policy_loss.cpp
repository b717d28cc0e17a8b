// The loss of sampled answers, per token (Shao et al. 2024, "DeepSeekMath", section 4.1, without the penalty). With the
// token's log-probability now and when it was sampled, and its weight, the advantage of its answer:
//   without the attribute clip:  loss = -weight log p
//   with it:                     ratio = p / sampled p, loss = -min(weight ratio, weight clamp(ratio, 1 - clip, 1 +
//   clip))
// Right after sampling both have the same gradient.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

// lse, target, labels, weights, sampled: [batch seq] -> sums over labelled positions of the loss, of 1, and of
// |log p - sampled|, []
OpRow policy_loss() {
  return {.kind = "policy_loss",
          .ins = {"lse", "target", "labels", "weights", "sampled"},
          .outs = {"loss", "count", "gap"},
          .infer = [](Types, const Attributes&) -> OutTypes {
            return {scalar(), scalar(), scalar()};
          },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> douts) -> std::vector<ValueId> {
            std::vector<ValueId> dx =
                g.make("policy_loss_grad",
                       {op.in("lse"), op.in("target"), op.in("labels"), op.in("weights"), op.in("sampled"), douts[0]},
                       {g.type(op.in("lse")), g.type(op.in("target"))}, op.attributes);
            dx.insert(dx.end(), {kNone, kNone, kNone});  // for labels, weights and sampled
            return dx;
          },
          .flops = [](Types ins, Types, const Attributes&) { return 8.0 * elements(ins); },
          .keeps_zero = true,
          .accumulates = {"loss", "count", "gap"}};
}

OpRow policy_loss_grad() {
  return {.kind = "policy_loss_grad",
          .ins = {"lse", "target", "labels", "weights", "sampled", "dloss"},
          .outs = {"dlse", "dtarget"},
          .family = "policy_loss",
          .flops = [](Types ins, Types, const Attributes&) { return 6.0 * elements(ins); },
          .keeps_zero = true};
}

}  // namespace kintsugi::ops
