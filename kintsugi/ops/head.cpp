// The vocabulary's loss as two operations, statistics and gradient, or as one. The gradient needs the statistics of the
// whole vocabulary. One operation has them where one rank has it all, and makes the logits once, in blocks. Two make
// them twice, in blocks too, or keep them: the third output of `head`, the seventh operand of `head_grad`. x [batch seq
// embed], table [vocab embed], labels [batch seq] -> lse, target [batch seq] (, logits [batch seq vocab])
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
          .flops = [](Types ins, Types, const Attributes&) { return (ins.size() == 7 ? 2.0 : 3.0) * logits(ins); },
          .whole = {"embed"},
          .keeps_zero = true,
          .accumulates = 0b10};
}

// x, table, labels, dlse, dtarget -> lse, target, dx, dtable
OpRow head_with_grad() {
  return {.kind = "head_with_grad",
          .family = "head",
          .flops = [](Types ins, Types, const Attributes&) { return 3.0 * logits(ins); },
          .whole = {"embed", "vocab"},
          .accumulates = 0b1000};
}

}  // namespace kintsugi::ops
