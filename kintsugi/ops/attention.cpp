// Scaled dot-product attention in one operation (Vaswani et al. 2017, section 3.2.1), tiled with online softmax (Dao et
// al. 2022, algorithm 1). q: [batch seq kv_heads group head_dim], k, v: [batch key_seq kv_heads head_dim], starts:
// [batch seq], key_starts: [batch key_seq], sinks: [kv_heads group], o: as q, lse: [batch seq kv_heads group]. The
// output dqkv of the gradient: [batch seq columns], dq, dk and dv as adjacent columns in their place, is introduced by
// lower/join_columns.
#include <algorithm>

#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

OutTypes infer(Types ins, const Attributes&) {
  std::vector<tensor::Dim> dims = ins["q"].shape.dims();
  dims.pop_back();
  return {ins["q"], {Shape(dims), graph::wide(ins["q"].dtype)}};
}

std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> douts) {
  const ValueId q = op.in("q"), k = op.in("k"), v = op.in("v"), starts = op.in("starts"),
                key_starts = op.in("key_starts"), sinks = op.in("sinks");
  OutTypes types = {g.type(q), g.type(k), g.type(v)};
  if (sinks != kNone) types.add(g.gradient_type(sinks));
  std::vector<ValueId> dx =
      g.make("attention_grad", {q, k, v, starts, key_starts, sinks, op.out("o"), op.out("lse"), douts[0]}, types,
             op.attributes);
  dx.insert(dx.begin() + 3, 2, kNone);  // for starts and key_starts
  dx.resize(6, kNone);
  return dx;
}

// Query-key pairs that are computed: half of them if causal, and those near the diagonal with a window.
double pairs(const Type& q, const Type& k, const Attributes& a) {
  const auto keys = static_cast<double>(k.shape.size("key_seq"));
  double all = static_cast<double>(q.shape.elements()) * keys;
  if (const int64_t window = a.integer_or("window", 0); window > 0) {
    const double share = std::min(static_cast<double>(window) / keys, 1.0);
    all *= share * (2 - share);
  }
  return a.integer_or("causal", 0) ? all / 2 : all;
}

}  // namespace

OpRow attention() {
  return {.kind = "attention",
          .ins = {"q", "k", "v", optional("starts"), optional("key_starts"), optional("sinks")},
          .outs = {"o", "lse"},
          .infer = infer,
          .grad = grad,
          .flops = [](Types ins, Types, const Attributes& a) { return 4.0 * pairs(ins["q"], ins["k"], a); },
          .cost_class = tensor::CostClass::attention,
          .whole = {"key_seq", "head_dim"},
          .steps = {"key_seq"},
          .join = "attention_join",
          .selective = true};
}

OpRow attention_grad() {
  return {.kind = "attention_grad",
          .ins = {"q", "k", "v", optional("starts"), optional("key_starts"), optional("sinks"), "o", "lse", "do"},
          .outs = {optional("dq"), optional("dk"), optional("dv"), optional("dsinks"), optional("dqkv")},
          .family = "attention",
          .flops = [](Types ins, Types, const Attributes& a) { return 10.0 * pairs(ins["q"], ins["k"], a); },
          .cost_class = tensor::CostClass::attention,
          .whole = {"key_seq", "head_dim"},
          .steps = {"key_seq"},
          .keeps_zero = true,
          .accumulates = {"dsinks"},
          .made_together = {"dq", "dk", "dv"}};
}

}  // namespace kintsugi::ops
