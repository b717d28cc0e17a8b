// Scaled dot-product attention in one operation (Vaswani et al. 2017, section 3.2.1), computed by tiles with a running
// softmax (Dao et al. 2022, algorithm 1). q: [batch seq kv_heads group head_dim], k, v: [batch key_seq kv_heads
// head_dim], starts: [batch seq], o: as q, lse: [batch seq kv_heads group].
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

std::vector<Type> infer(Types ins, const Attributes&) {
  std::vector<tensor::Dim> dims = ins[0].shape.dims();
  dims.pop_back();
  return {ins[0], {Shape(dims), graph::wide(ins[0].dtype)}};
}

std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> douts) {
  std::vector<ValueId> ins = op.ins;
  ins.insert(ins.end(), {op.outs[0], op.outs[1], douts[0]});
  std::vector<ValueId> dx =
      g.make("attention_grad", ins, {g.type(op.ins[0]), g.type(op.ins[1]), g.type(op.ins[2])}, op.attributes);
  dx.resize(op.ins.size(), kNone);
  return dx;
}

// Query-key pairs that are computed: half of them where causal.
double pairs(const Type& q, const Type& k, const Attributes& a) {
  const double all = static_cast<double>(q.shape.elements() * k.shape.size("key_seq"));
  return a.integer_or("causal", 0) ? all / 2 : all;
}

}  // namespace

OpRow attention() {
  return {.kind = "attention",
          .infer = infer,
          .grad = grad,
          .flops = [](Types ins, Types, const Attributes& a) { return 4.0 * pairs(ins[0], ins[1], a); },
          .whole = {"key_seq", "head_dim"},
          .steps = {"key_seq"},
          .join = "attention_join",
          .selective = true};
}

OpRow attention_grad() {
  return {.kind = "attention_grad",
          .family = "attention",
          .flops = [](Types ins, Types, const Attributes& a) { return 10.0 * pairs(ins[0], ins[1], a); },
          .whole = {"key_seq", "head_dim"},
          .steps = {"key_seq"},
          .keeps_zero = true};
}

}  // namespace kintsugi::ops
