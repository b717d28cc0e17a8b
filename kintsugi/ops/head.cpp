// The vocabulary's loss as two operations, statistics and gradient, or as one. The gradient needs the statistics of
// the whole vocabulary. One operation suffices if one rank has the whole vocabulary, and makes the logits once, in
// blocks. Two make them twice, in blocks too, or keep them: the output `logits` of `head`, which is an operand of
// `head_grad`.
// x: [batch seq embed], table: [vocab embed], labels, lse, target: [batch seq], logits: [batch seq vocab]
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

OutTypes infer(Types ins, const Attributes&) {
  const Type statistic = {ins["labels"].shape, graph::wide(ins["x"].dtype)};
  return {statistic, statistic};
}

std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> douts) {
  const ValueId x = op.in("x"), table = op.in("table"), labels = op.in("labels");
  std::vector<ValueId> dx = g.make("head_grad", {x, table, labels, op.out("lse"), douts[0], douts[1], op.out("logits")},
                                   {g.type(x), g.gradient_type(table)}, op.attributes);
  dx.push_back(kNone);  // of labels
  return dx;
}

// Of the logits, made once.
double product(Types ins) {
  return 2.0 * elements(ins) * static_cast<double>(ins["table"].shape.size("vocab"));
}

}  // namespace

OpRow head() {
  return {.kind = "head",
          .ins = {"x", "table", "labels"},
          .outs = {"lse", "target", optional("logits")},
          .infer = infer,
          .grad = grad,
          .flops = [](Types ins, Types, const Attributes&) { return product(ins); },
          .whole = {"embed"},
          .combine = {{"lse", graph::Combiner::logsumexp}}};
}

OpRow head_grad() {
  return {.kind = "head_grad",
          .ins = {"x", "table", "labels", "lse", "dlse", "dtarget", optional("logits")},
          .outs = {"dx", "dtable"},
          .family = "head",
          .flops = [](Types ins, Types, const Attributes&) { return (ins.has("logits") ? 2.0 : 3.0) * product(ins); },
          .whole = {"embed"},
          .keeps_zero = true,
          .accumulates = {"dtable"}};
}

OpRow head_with_grad() {
  return {.kind = "head_with_grad",
          .ins = {"x", "table", "labels", "dlse", "dtarget"},
          .outs = {"lse", "target", "dx", "dtable"},
          .family = "head",
          .flops = [](Types ins, Types, const Attributes&) { return 3.0 * product(ins); },
          .whole = {"embed", "vocab"},
          .accumulates = {"dtable"}};
}

}  // namespace kintsugi::ops
