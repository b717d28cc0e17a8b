// The vocabulary's loss as two operations, statistics and gradient, or as one. The gradient needs the statistics of the
// whole vocabulary. One operation suffices if one rank has the whole vocabulary, and computes the logits once, in
// blocks. Two compute them twice, also in blocks, or keep them: the output `logits` of `head` is then an operand of
// `head_grad`. The output `top`, the largest logit, is for evaluation: whether the label is the most likely token.
// x: [batch seq embed], table: [vocab embed], bias: [vocab], labels, lse, target, top: [batch seq], logits: [batch seq
// vocab]
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

OutTypes infer(Types ins, const Attributes&) {
  const Type statistic = {ins["labels"].shape, graph::wide(ins["x"].dtype)};
  return {statistic, statistic};
}

std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> douts) {
  const ValueId x = op.in("x"), table = op.in("table"), labels = op.in("labels"), bias = op.in("bias");
  OutTypes types = {g.type(x), g.gradient_type(table)};
  if (bias != kNone) types.add(g.gradient_type(bias));
  std::vector<ValueId> dx = g.make(
      "head_grad", {x, table, labels, bias, op.out("lse"), douts[0], douts[1], op.out("logits")}, types, op.attributes);
  dx.insert(dx.begin() + 2, kNone);  // for labels
  dx.resize(4, kNone);
  return dx;
}

// Of the logits, computed once.
double product(Types ins) {
  return 2.0 * elements(ins) * static_cast<double>(ins["table"].shape.size("vocab"));
}

// Number of matmuls of the gradient: dx, and dtable unless the table is frozen.
double gradients(Types outs) {
  return outs.has("dtable") ? 2.0 : 1.0;
}

}  // namespace

OpRow head() {
  return {.kind = "head",
          .ins = {"x", "table", "labels", optional("bias")},
          .outs = {"lse", "target", optional("logits"), optional("top")},
          .infer = infer,
          .grad = grad,
          .flops = [](Types ins, Types, const Attributes&) { return product(ins); },
          .cost_class = tensor::CostClass::product,
          .whole = {"embed"},
          .combine = {{"lse", graph::Combiner::logsumexp}, {"top", graph::Combiner::max}}};
}

OpRow head_grad() {
  return {.kind = "head_grad",
          .ins = {"x", "table", "labels", optional("bias"), "lse", "dlse", "dtarget", optional("logits")},
          .outs = {"dx", optional("dtable"), optional("dbias")},
          .family = "head",
          .flops = [](Types ins, Types outs,
                      const Attributes&) { return ((ins.has("logits") ? 0.0 : 1.0) + gradients(outs)) * product(ins); },
          .cost_class = tensor::CostClass::product,
          .whole = {"embed"},
          .keeps_zero = true,
          .accumulates = {"dtable", "dbias"}};
}

OpRow head_with_grad() {
  return {.kind = "head_with_grad",
          .ins = {"x", "table", "labels", optional("bias"), "dlse", "dtarget"},
          .outs = {"lse", "target", "dx", optional("dtable"), optional("dbias")},
          .family = "head",
          .flops = [](Types ins, Types outs, const Attributes&) { return (1.0 + gradients(outs)) * product(ins); },
          .cost_class = tensor::CostClass::product,
          .whole = {"embed", "vocab"},
          .accumulates = {"dtable", "dbias"}};
}

}  // namespace kintsugi::ops
