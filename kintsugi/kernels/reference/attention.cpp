#include <algorithm>
#include <cmath>
#include <limits>

#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What attention and its gradient share: the operands, what is visible, and the way through the queries.
// q: [batch seq kv_heads group head_dim], k, v: [batch key_seq kv_heads head_dim]
struct Setting {
  using In = AttentionIn;  // the first operands of the gradient too

  explicit Setting(const KernelCall& call)
      : q(load(call.ins[In::kQ])),
        k(load(call.ins[In::kK])),
        v(load(call.ins[In::kV])),
        q_shape(call.ins[In::kQ].shape()),
        keys(call.ins[In::kK].size("key_seq")),
        head_dim(call.ins[In::kQ].size("head_dim")),
        key_stride(stride(call.ins[In::kK].shape(), "key_seq")),
        scale(call.attributes.number("scale")),
        key_of(global_of_local(call.index("key_seq"))),
        whole_keys(call.index("key_seq").whole()),
        mask(call, call.attributes.number_or("dropout", 0), call.attributes.text_or("key", "")) {
    rows = Shape({{"batch", q_shape.size("batch")},
                  {"seq", q_shape.size("seq")},
                  {"kv_heads", q_shape.size("kv_heads")},
                  {"group", q_shape.size("group")}});
    key_begin = offsets(rows, call.ins[In::kK].shape());
    position = positions_in_whole(call, rows);
    first.assign(key_begin.size(), 0);
    last.assign(key_begin.size(), whole_keys - 1);
    if (const View& view = call.ins[In::kStarts]; view.data) {
      const std::vector<int64_t> starts = load_integers(view);  // [batch seq]
      const std::vector<int64_t> at = offsets(rows, view.shape());
      for (size_t row = 0; row < at.size(); ++row) {
        first[row] = std::max<int64_t>(0, starts[static_cast<size_t>(at[row])]);
      }
    }
    if (call.attributes.integer("causal") != 0) {
      const std::vector<int64_t> query_of = global_of_local(call.index("seq"));
      const std::vector<int64_t> at = offsets(rows, Shape({{"seq", q_shape.size("seq")}}));
      for (size_t row = 0; row < at.size(); ++row) last[row] = query_of[static_cast<size_t>(at[row])];
    }
    for (size_t row = 0; row < position.size(); ++row) {
      if (position[row] < 0) last[row] = -1;  // padding sees nothing
    }
  }

  int64_t num_rows() const { return rows.elements(); }
  const double* q_row(int64_t row) const { return q.data() + row * head_dim; }
  int64_t key_offset(int64_t row, int64_t t) const { return key_begin[static_cast<size_t>(row)] + t * key_stride; }

  bool visible(int64_t row, int64_t t) const {
    const int64_t key = key_of[static_cast<size_t>(t)];
    return key >= first[static_cast<size_t>(row)] && key <= last[static_cast<size_t>(row)];
  }

  double score(int64_t row, int64_t t) const {
    const double* key = k.data() + key_offset(row, t);
    double dot = 0;
    for (int64_t i = 0; i < head_dim; ++i) dot += q_row(row)[i] * key[i];
    return dot * scale;
  }

  // Dropout's factor of a visible pair.
  double kept(int64_t row, int64_t t) const {
    return mask(position[static_cast<size_t>(row)] * whole_keys + key_of[static_cast<size_t>(t)]);
  }

  std::vector<double> q, k, v;
  Shape q_shape;
  int64_t keys, head_dim, key_stride;
  double scale;
  std::vector<int64_t> key_of;  // global indices
  int64_t whole_keys;
  DropoutMask mask;
  Shape rows;                        // [batch seq kv_heads group]
  std::vector<int64_t> key_begin;    // where the first key of a row's head stands in k and v
  std::vector<int64_t> position;     // of a row in the whole
  std::vector<int64_t> first, last;  // the global indices of the keys that a row may see
};

}  // namespace

void attention(const KernelCall& call) {
  const Setting s(call);
  std::vector<double> o(s.q.size(), 0.0), lse;  // [batch seq kv_heads group head_dim], [batch seq kv_heads group]
  std::vector<double> scores(static_cast<size_t>(s.keys));
  for (int64_t row = 0; row < s.num_rows(); ++row) {
    double top = -kInfinity, sum = 0;
    for (int64_t t = 0; t < s.keys; ++t) {
      const double score = s.visible(row, t) ? s.score(row, t) : -kInfinity;
      scores[static_cast<size_t>(t)] = score;
      if (!(score <= top)) top = score;
    }
    if (top == -kInfinity) {
      lse.push_back(-kInfinity);
      continue;
    }
    for (double score : scores) sum += std::exp(score - top);
    lse.push_back(top + std::log(sum));
    for (int64_t t = 0; t < s.keys; ++t) {
      if (!s.visible(row, t)) continue;
      const double p = std::exp(scores[static_cast<size_t>(t)] - lse.back()) * s.kept(row, t);
      const double* value = s.v.data() + s.key_offset(row, t);
      for (int64_t i = 0; i < s.head_dim; ++i) o[static_cast<size_t>(row * s.head_dim + i)] += p * value[i];
    }
  }
  store(call, AttentionOut::kO, o);
  store(call, AttentionOut::kLse, lse);
}

// With D = sum of do * o over a row, and dropout's factor m: dv = m p do, dscore = p (m (do.v) - D).
void attention_grad(const KernelCall& call) {
  using In = AttentionGradIn;
  using Out = AttentionGradOut;
  const Setting s(call);
  const std::vector<double> o = load(call.ins[In::kO]), lse = load(call.ins[In::kLse]), d_o = load(call.ins[In::kDo]);
  std::vector<double> dq(s.q.size(), 0.0), dk(s.k.size(), 0.0), dv(s.v.size(), 0.0);
  for (int64_t row = 0; row < s.num_rows(); ++row) {
    const double row_lse = lse[static_cast<size_t>(row)];
    if (row_lse == -kInfinity) continue;
    const double *q_row = s.q_row(row), *o_row = o.data() + row * s.head_dim, *do_row = d_o.data() + row * s.head_dim;
    double* dq_row = dq.data() + row * s.head_dim;
    double d = 0;
    for (int64_t i = 0; i < s.head_dim; ++i) d += do_row[i] * o_row[i];
    for (int64_t t = 0; t < s.keys; ++t) {
      if (!s.visible(row, t)) continue;
      const int64_t key = s.key_offset(row, t);
      const double p = std::exp(s.score(row, t) - row_lse), m = s.kept(row, t);
      double dp = 0;
      for (int64_t i = 0; i < s.head_dim; ++i) dp += do_row[i] * s.v[static_cast<size_t>(key + i)];
      const double dscore = p * (m * dp - d) * s.scale;
      for (int64_t i = 0; i < s.head_dim; ++i) {
        dq_row[i] += dscore * s.k[static_cast<size_t>(key + i)];
        dk[static_cast<size_t>(key + i)] += dscore * q_row[i];
        dv[static_cast<size_t>(key + i)] += m * p * do_row[i];
      }
    }
  }
  store(call, Out::kDq, dq);
  store(call, Out::kDk, dk);
  store(call, Out::kDv, dv);
}

}  // namespace kintsugi::kernels::reference
