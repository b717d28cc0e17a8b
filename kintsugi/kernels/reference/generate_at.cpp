// Operations on rows of different texts, each at its own position (ops/generate_at.cpp).
#include <cmath>
#include <limits>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"
#include "kintsugi/kernels/rotary_frequencies.h"

namespace kintsugi::kernels::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The position of token s of each row of the batch, -1 for padding.
class RowPositions {
 public:
  RowPositions(const KernelCall& call, const View& at) : at_(load_integers(at)) {
    for (size_t i = 0; i < at_.size(); ++i)
      if (call.index("batch")[static_cast<int64_t>(i)] < 0) at_[i] = -1;
  }
  int64_t operator()(int64_t row, int64_t s) const {
    const int64_t first = at_[static_cast<size_t>(row)];
    return first < 0 ? -1 : first + s;
  }

 private:
  std::vector<int64_t> at_;
};

}  // namespace

void cache_write_at(const KernelCall& call) {
  using In = CacheWriteAtIn;
  const View &cache = call.ins[In::kCache], &x = call.ins[In::kX];
  std::vector<double> keys = load(cache);     // [text key_seq kv_heads head_dim]
  const std::vector<double> fresh = load(x);  // [batch seq kv_heads head_dim]
  const std::vector<int64_t> text = load_integers(call.ins[In::kText]),
                             place_of = local_of_global(call.index("key_seq"));
  const RowPositions position(call, call.ins[In::kAt]);
  const int64_t seq = x.size("seq"), key_seq = cache.size("key_seq"), row = stride(x.shape(), "seq");
  for (int64_t b = 0; b < x.size("batch"); ++b) {
    const int64_t of = text[static_cast<size_t>(b)];
    base::require(of < cache.size("text"), "cache_write_at", "text {} of {}", of, cache.size("text"));
    for (int64_t s = 0; s < seq; ++s) {
      const int64_t place = at_or_absent(place_of, position(b, s));
      if (of < 0 || place < 0) continue;
      for (int64_t i = 0; i < row; ++i)
        keys[static_cast<size_t>((of * key_seq + place) * row + i)] =
            fresh[static_cast<size_t>((b * seq + s) * row + i)];
    }
  }
  store(call, 0, keys);
}

void attention_at(const KernelCall& call) {
  using In = AttentionAtIn;
  const Shape& q_shape = call.ins[In::kQ].shape();  // [batch seq kv_heads group head_dim]
  const std::vector<double> q = load(call.ins[In::kQ]), k = load(call.ins[In::kK]), v = load(call.ins[In::kV]);
  const std::vector<int64_t> text = load_integers(call.ins[In::kText]), key_of = global_of_local(call.index("key_seq"));
  const RowPositions position(call, call.ins[In::kAt]);
  const int64_t seq = q_shape.size("seq"), kv_heads = q_shape.size("kv_heads"), group = q_shape.size("group"),
                head_dim = q_shape.size("head_dim"), keys = call.ins[In::kK].size("key_seq"),
                window = call.attributes.integer_or("window", 0);
  const double scale = call.attributes.number("scale"), softcap = call.attributes.number_or("softcap", 0);
  const bool causal = call.attributes.integer("causal") != 0;
  const View& sinks_view = call.ins[In::kSinks];
  const std::vector<double> sinks = sinks_view.data ? load(sinks_view) : std::vector<double>();
  std::vector<double> o(q.size(), 0.0), scores(static_cast<size_t>(keys));
  for (int64_t row = 0; row < rows(q_shape); ++row) {
    const int64_t head = row / group % kv_heads, s = row / group / kv_heads % seq, b = row / group / kv_heads / seq,
                  of = text[static_cast<size_t>(b)], query = position(b, s);
    const bool padding = call.index("kv_heads")[head] < 0 || call.index("group")[row % group] < 0;
    if (of < 0 || query < 0 || padding) continue;
    const auto at = [&](int64_t t) { return static_cast<size_t>(((of * keys + t) * kv_heads + head) * head_dim); };
    double top = -kInfinity, sum = 0;
    for (int64_t t = 0; t < keys; ++t) {
      const int64_t key = key_of[static_cast<size_t>(t)];
      double& score = scores[static_cast<size_t>(t)];
      score = -kInfinity;
      if (key < 0 || (causal && key > query)) continue;
      if (window > 0 && (key <= query - window || key >= query + window)) continue;
      score = 0;
      for (int64_t i = 0; i < head_dim; ++i)
        score += q[static_cast<size_t>(row * head_dim + i)] * k[at(t) + static_cast<size_t>(i)];
      score = softcap > 0 ? softcap * std::tanh(score * scale / softcap) : score * scale;
      top = std::max(top, score);
    }
    if (top == -kInfinity) continue;
    if (!sinks.empty()) {
      const double sink = sinks[static_cast<size_t>(row % (kv_heads * group))];
      top = std::max(top, sink);
      sum = std::exp(sink - top);
    }
    for (double score : scores) sum += std::exp(score - top);
    for (int64_t t = 0; t < keys; ++t) {
      const double p = std::exp(scores[static_cast<size_t>(t)] - top) / sum;
      if (p == 0) continue;
      for (int64_t i = 0; i < head_dim; ++i)
        o[static_cast<size_t>(row * head_dim + i)] += p * v[at(t) + static_cast<size_t>(i)];
    }
  }
  store(call, 0, o);
}

void rotary_at(const KernelCall& call) {
  std::vector<double> x = load(call.ins[0]);  // [batch seq ... head_dim]
  const Shape& shape = call.ins[0].shape();
  const RowPositions position(call, call.ins[1]);
  const int64_t head_dim = shape.size("head_dim"), seq = shape.size("seq"), of_token = stride(shape, "seq");
  const RotaryFrequencies frequencies(call.attributes, head_dim);
  const int64_t half = frequencies.dims() / 2;
  const double direction = call.attributes.integer("inverse") != 0 ? -1 : 1;
  const bool interleaved = call.attributes.integer("interleaved") != 0;
  for (int64_t row = 0; row < rows(shape); ++row) {
    double* pair = x.data() + row * head_dim;
    const int64_t token = row * head_dim / of_token, place = position(token / seq, token % seq);
    if (place < 0) continue;
    for (int64_t i = 0; i < half; ++i) {
      const double angle = direction * static_cast<double>(place) * frequencies[i];
      const double cosine = frequencies.magnitude() * std::cos(angle), sine = frequencies.magnitude() * std::sin(angle);
      double &first = pair[interleaved ? 2 * i : i], &second = pair[interleaved ? 2 * i + 1 : i + half];
      const double turned = first * cosine - second * sine;
      second = first * sine + second * cosine;
      first = turned;
    }
  }
  store(call, 0, x);
}

void position_at(const KernelCall& call) {
  const std::vector<double> table = load(call.ins[0]);  // [position embed]
  const std::vector<int64_t> row_of = local_of_global(call.index("position"));
  const RowPositions position(call, call.ins[1]);
  const Shape& shape = call.outs[0].shape();  // [batch seq embed]
  const int64_t embed = width(shape);
  std::vector<double> y;
  for (int64_t b = 0; b < shape.size("batch"); ++b)
    for (int64_t s = 0; s < shape.size("seq"); ++s) {
      const int64_t row = at_or_absent(row_of, position(b, s));
      for (int64_t e = 0; e < embed; ++e) y.push_back(row < 0 ? 0.0 : table[static_cast<size_t>(row * embed + e)]);
    }
  store(call, 0, y);
}

void take_rows(const KernelCall& call) {
  const std::vector<double> x = load(call.ins[0]);  // [batch seq embed]
  const Shape& from = call.ins[0].shape();
  const int64_t embed = width(from), seq = from.size("seq");
  std::vector<double> y;  // [row embed]
  for (const int64_t row : load_integers(call.ins[1])) {
    base::require(row < from.size("batch"), "take_rows", "row {} of {}", row, to_string(from));
    for (int64_t e = 0; e < embed; ++e)
      y.push_back(row < 0 ? 0.0 : x[static_cast<size_t>((row * seq + seq - 1) * embed + e)]);
  }
  store(call, 0, y);
}

}  // namespace kintsugi::kernels::reference
