// The vocabulary's loss as two operations, statistics and gradient: the logits are never whole in memory.
// x [batch seq embed], table [vocab embed], labels [batch seq] -> lse, target [batch seq]
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

std::vector<Type> infer(Types ins, const Attributes&) {
  const Type statistic = {ins[2].shape, graph::wide(ins[0].dtype)};
  return {statistic, statistic};
}

std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> douts) {
  std::vector<ValueId> dx = g.make("head_grad", {op.ins[0], op.ins[1], op.ins[2], op.outs[0], douts[0], douts[1]},
                                   {g.type(op.ins[0]), g.gradient_type(op.ins[1])}, op.attributes);
  dx.push_back(kNone);
  return dx;
}

double logits(Types ins) {
  return 2.0 * elements(ins) * static_cast<double>(ins[1].shape[0].size);
}

}  // namespace

OpRow head() {
  return {.kind = "head",
          .infer = infer,
          .grad = grad,
          .flops = [](Types ins, Types, const Attributes&) { return logits(ins); },
          .whole = {"embed"},
          .combine = {graph::Combiner::logsumexp, graph::Combiner::sum}};
}

OpRow head_grad() {
  return {.kind = "head_grad",
          .family = "head",
          .flops = [](Types ins, Types, const Attributes&) { return 3.0 * logits(ins); },
          .whole = {"embed"},
          .keeps_zero = true,
          .accumulates = 0b10};
}

}  // namespace kintsugi::ops
