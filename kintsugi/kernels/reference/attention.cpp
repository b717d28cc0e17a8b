#include <algorithm>
#include <cmath>
#include <limits>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Shared by attention and its gradient: operands, visibility, and iteration over queries.
// q: [batch seq kv_heads group head_dim], k, v: [batch key_seq kv_heads head_dim], starts: [batch seq], key_starts:
// [batch key_seq], sinks: [kv_heads group]
struct Setting {
  using In = AttentionIn;  // also the first operands of the gradient

  explicit Setting(const KernelCall& call)
      : q(load(call.ins[In::kQ])),
        k(load(call.ins[In::kK])),
        v(load(call.ins[In::kV])),
        q_shape(call.ins[In::kQ].shape()),
        keys(call.ins[In::kK].size("key_seq")),
        head_dim(call.ins[In::kQ].size("head_dim")),
        key_stride(stride(call.ins[In::kK].shape(), "key_seq")),
        scale(call.attributes.number("scale")),
        softcap(call.attributes.number_or("softcap", 0)),
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
      const std::vector<int64_t> starts = load_integers(view);
      const std::vector<int64_t> at = offsets(rows, view.shape());
      for (size_t row = 0; row < at.size(); ++row) {
        start.push_back(starts[static_cast<size_t>(at[row])]);
        first[row] = std::max<int64_t>(0, start[row]);
      }
    }
    if (const View& view = call.ins[In::kKeyStarts]; view.data) {
      base::require(call.ins[In::kStarts].data, "attention", "key_starts without starts");
      key_starts = load_integers(view);
      key_start_begin = offsets(rows, view.shape());
      key_start_stride = stride(view.shape(), "key_seq");
    }
    const bool causal = call.attributes.integer("causal") != 0;
    const int64_t window = call.attributes.integer_or("window", 0);
    const std::vector<int64_t> query_of = global_of_local(call.index("seq"));
    const std::vector<int64_t> at = offsets(rows, Shape({{"seq", q_shape.size("seq")}}));
    for (size_t row = 0; row < at.size(); ++row) {
      const int64_t query = query_of[static_cast<size_t>(at[row])];
      if (causal) last[row] = query;
      if (window <= 0) continue;
      first[row] = std::max(first[row], query - window + 1);
      last[row] = std::min(last[row], query + window - 1);
    }
    for (size_t row = 0; row < position.size(); ++row) {
      if (position[row] < 0) last[row] = -1;  // padding sees no key
    }
    // A sink belongs to the first key of all, so that keys processed piece by piece have it once.
    if (const View& view = call.ins[In::kSinks]; view.data && std::count(key_of.begin(), key_of.end(), 0) > 0) {
      sinks = load(view);
      sink_of = offsets(rows, view.shape());
    }
  }

  int64_t num_rows() const { return rows.elements(); }
  const double* q_row(int64_t row) const { return q.data() + row * head_dim; }
  int64_t key_offset(int64_t row, int64_t t) const { return key_begin[static_cast<size_t>(row)] + t * key_stride; }

  bool visible(int64_t row, int64_t t) const {
    const int64_t key = key_of[static_cast<size_t>(t)];
    if (key < first[static_cast<size_t>(row)] || key > last[static_cast<size_t>(row)]) return false;
    return key_starts.empty() ||
           key_starts[static_cast<size_t>(key_start_begin[static_cast<size_t>(row)] + t * key_start_stride)] ==
               start[static_cast<size_t>(row)];
  }

  double score(int64_t row, int64_t t) const {
    const double* key = k.data() + key_offset(row, t);
    double dot = 0;
    for (int64_t i = 0; i < head_dim; ++i) dot += q_row(row)[i] * key[i];
    return softcap > 0 ? softcap * std::tanh(dot * scale / softcap) : dot * scale;
  }

  // The derivative of capping a score.
  double slope(double score) const { return softcap > 0 ? 1 - score * score / (softcap * softcap) : 1; }

  // The sink's logit; -infinity if a row has none.
  double sink(int64_t row) const {
    const auto i = static_cast<size_t>(row);
    return sinks.empty() || position[i] < 0 ? -kInfinity : sinks[static_cast<size_t>(sink_of[i])];
  }

  // Dropout factor of a visible pair.
  double kept(int64_t row, int64_t t) const {
    return mask(position[static_cast<size_t>(row)] * whole_keys + key_of[static_cast<size_t>(t)]);
  }

  std::vector<double> q, k, v;
  Shape q_shape;
  int64_t keys, head_dim, key_stride;
  double scale, softcap;        // 0: no cap
  std::vector<int64_t> key_of;  // global indices
  int64_t whole_keys;
  DropoutMask mask;
  Shape rows;                                        // [batch seq kv_heads group]
  std::vector<int64_t> key_begin;                    // offset of the first key of a row's head in k and v
  std::vector<int64_t> position;                     // of a row in the whole
  std::vector<int64_t> first, last;                  // global indices of the keys that a row may see
  std::vector<int64_t> start;                        // of a row
  std::vector<int64_t> key_starts, key_start_begin;  // offset for a row's batch
  int64_t key_start_stride = 0;
  std::vector<double> sinks;
  std::vector<int64_t> sink_of;  // of a row
};

}  // namespace

void attention(const KernelCall& call) {
  const Setting s(call);
  std::vector<double> o(s.q.size(), 0.0), lse;  // [batch seq kv_heads group head_dim], [batch seq kv_heads group]
  std::vector<double> scores(static_cast<size_t>(s.keys));
  for (int64_t row = 0; row < s.num_rows(); ++row) {
    double top = s.sink(row), sum = 0;
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
    sum += std::exp(s.sink(row) - top);
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

// With D = sum of do * o over a row and m the dropout factor: dv = m p do, dscore = p (m (do.v) - D). A sink has value
// 0: its dscore is -p D.
void attention_grad(const KernelCall& call) {
  using In = AttentionGradIn;
  using Out = AttentionGradOut;
  const Setting s(call);
  const std::vector<double> o = load(call.ins[In::kO]), lse = load(call.ins[In::kLse]), d_o = load(call.ins[In::kDo]);
  std::vector<double> dq(s.q.size(), 0.0), dk(s.k.size(), 0.0), dv(s.v.size(), 0.0),
      dsinks(static_cast<size_t>(call.ins[In::kSinks].data ? call.ins[In::kSinks].elements() : 0), 0.0);
  for (int64_t row = 0; row < s.num_rows(); ++row) {
    const double row_lse = lse[static_cast<size_t>(row)];
    if (row_lse == -kInfinity) continue;
    const double *q_row = s.q_row(row), *o_row = o.data() + row * s.head_dim, *do_row = d_o.data() + row * s.head_dim;
    double* dq_row = dq.data() + row * s.head_dim;
    double d = 0;
    for (int64_t i = 0; i < s.head_dim; ++i) d += do_row[i] * o_row[i];
    if (!s.sinks.empty())
      dsinks[static_cast<size_t>(s.sink_of[static_cast<size_t>(row)])] -= std::exp(s.sink(row) - row_lse) * d;
    for (int64_t t = 0; t < s.keys; ++t) {
      if (!s.visible(row, t)) continue;
      const int64_t key = s.key_offset(row, t);
      const double score = s.score(row, t), p = std::exp(score - row_lse), m = s.kept(row, t);
      double dp = 0;
      for (int64_t i = 0; i < s.head_dim; ++i) dp += do_row[i] * s.v[static_cast<size_t>(key + i)];
      const double dscore = p * (m * dp - d) * s.slope(score) * s.scale;
      for (int64_t i = 0; i < s.head_dim; ++i) {
        dq_row[i] += dscore * s.k[static_cast<size_t>(key + i)];
        dk[static_cast<size_t>(key + i)] += dscore * q_row[i];
        dv[static_cast<size_t>(key + i)] += m * p * do_row[i];
      }
    }
  }
  if (call.outs.size() > Out::kDqkv &&
      call.outs[Out::kDqkv].data) {  // adjacent columns, with batch and seq first in all
    std::vector<double> all;
    const auto count = static_cast<size_t>(s.q_shape.size("batch") * s.q_shape.size("seq"));
    for (size_t row = 0; row < count; ++row)
      for (const std::vector<double>* part : {&dq, &dk, &dv})
        for (size_t i = 0; i < part->size() / count; ++i) all.push_back((*part)[row * (part->size() / count) + i]);
    store(call, Out::kDqkv, all);
  } else {
    store(call, Out::kDq, dq);
    store(call, Out::kDk, dk);
    store(call, Out::kDv, dv);
  }
  if (call.outs[Out::kDsinks].data) store(call, Out::kDsinks, dsinks);
}

}  // namespace kintsugi::kernels::reference
