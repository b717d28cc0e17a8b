// Tile operations shared by attention and its gradient, once per SIMD target.
#if defined(KINTSUGI_ATTENTION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KINTSUGI_ATTENTION_INL
#undef KINTSUGI_ATTENTION_INL
#else
#define KINTSUGI_ATTENTION_INL
#endif

#include <algorithm>
#include <limits>
#include <type_traits>

#include "kintsugi/kernels/cpu/attention_setting.h"
#include "kintsugi/kernels/cpu/math-inl.h"
#include "kintsugi/kernels/cpu/random-inl.h"
#include "kintsugi/kernels/cpu/tile-inl.h"
#include "kintsugi/kernels/random.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

struct Copy {
  HWY_INLINE V operator()(V x) const { return x; }
};
struct Times {
  float by;
  HWY_INLINE V operator()(V x) const { return hn::Mul(x, set(by)); }
};

struct AddTimes {
  float by;
  HWY_INLINE V operator()(V x, V sum) const { return hn::MulAdd(x, set(by), sum); }
};

// Columns that a product of tiles computes for n wanted ones.
HWY_INLINE int64_t whole_vectors(int64_t n) {
  return (n + 2 * lanes() - 1) / (2 * lanes()) * (2 * lanes());
}

// The queries of a tile, and which keys they see.
struct QueryTile {
  int64_t batch, head, begin, count;
  int32_t start_low, start_high, last_low, last_high;
  int32_t document_low, document_high;
};

// Fills start, last, document and the random blocks of a tile.
inline QueryTile query_tile(const AttentionSetting& s, const AttentionScratch& t, int64_t b, int64_t head,
                            int64_t tile) {
  QueryTile q{b, head, tile * kTileQueries, 0, INT32_MAX, 0, INT32_MAX, -1, INT32_MAX, INT32_MIN};
  q.count = std::min(kTileQueries, s.queries() - q.begin);
  std::fill_n(t.start, kTileQueries, INT32_MAX), std::fill_n(t.last, kTileQueries, -1);
  for (uint32_t* word : {t.block_low, t.block_high, t.word}) std::fill_n(word, kTileQueries, 0);
  for (int64_t i = 0; i < q.count; ++i) {
    const int64_t at = (q.begin + i) / s.group, g = (q.begin + i) % s.group;
    if (s.query_place[at] < 0 || s.is_padding(b) || s.kv_head_place[head] < 0 || s.group_place[g] < 0) {
      q.start_high = INT32_MAX;  // padding sees nothing
      continue;
    }
    const int64_t place = s.query_place[at] + (s.at ? s.at[b] : 0);
    t.start[i] = s.starts ? std::max(0, s.starts[b * s.seq + at]) : 0;
    t.last[i] = s.causal ? static_cast<int32_t>(place) : INT32_MAX;
    if (s.window > 0) {
      t.start[i] = static_cast<int32_t>(std::max<int64_t>(t.start[i], place - s.window + 1));
      t.last[i] = static_cast<int32_t>(std::min<int64_t>(t.last[i], place + s.window - 1));
    }
    q.start_low = std::min(q.start_low, t.start[i]), q.start_high = std::max(q.start_high, t.start[i]);
    q.last_low = std::min(q.last_low, t.last[i]), q.last_high = std::max(q.last_high, t.last[i]);
    if (s.key_starts) {
      t.document[i] = s.starts[b * s.seq + at];
      q.document_low = std::min(q.document_low, t.document[i]);
      q.document_high = std::max(q.document_high, t.document[i]);
    }
    if (s.dropout > 0) {
      int64_t row = s.batch_place[b];
      row = row * s.whole_seq + place;
      row = row * s.whole_kv_heads + s.kv_head_place[head];
      row = row * s.whole_group + s.group_place[g];
      const uint64_t element = static_cast<uint64_t>(row) * static_cast<uint64_t>(s.whole_keys);
      t.block_low[i] = static_cast<uint32_t>(element >> 2);
      t.block_high[i] = static_cast<uint32_t>(element >> 34);
      t.word[i] = static_cast<uint32_t>(element & 3);
    }
  }
  return q;
}

enum class Seen { none, some, all };

inline Seen seen(const AttentionSetting& s, const QueryTile& q, int64_t key_tile) {
  const KeyTile& k = s.key_tiles[key_tile];
  if (k.high < 0 || k.high < q.start_low || k.low > q.last_high) return Seen::none;
  bool all = !k.pads && k.low >= q.start_high && k.high <= q.last_low;
  if (s.key_starts) {
    const StartRange& keys = s.start_ranges[q.batch * s.num_key_tiles() + key_tile];
    if (keys.high < q.document_low || keys.low > q.document_high) return Seen::none;
    all = all && keys.low == keys.high && q.document_low == q.document_high;
  }
  return all ? Seen::all : Seen::some;
}

inline bool sees_none(const AttentionSetting& s, const QueryTile& q, base::Range key_tiles) {
  for (int64_t kt = key_tiles.begin; kt < key_tiles.end; ++kt)
    if (seen(s, q, kt) != Seen::none) return false;
  return true;
}

// Caps a tile of scores times `scale` (Gemma Team 2024, "Gemma 2", section 2).
inline void cap_scores(const AttentionSetting& s, const AttentionScratch& t, int64_t queries, int64_t keys,
                       float scale) {
  const V cap = set(s.softcap), part = set(scale / s.softcap);
  for (int64_t i = 0; i < keys; ++i)
    for (int64_t j = 0; j < queries; j += lanes()) {
      float* score = t.score_t + i * kTileQueries + j;
      store(hn::Mul(cap, tanh_of(hn::Mul(load(score), part))), score);
    }
}

// Sets the scores of keys in other documents than the query's to -infinity.
inline void hide_other_documents(const AttentionSetting& s, const AttentionScratch& t, const QueryTile& q,
                                 int64_t queries, int64_t begin, int64_t keys) {
  const int32_t* key_start = s.key_starts + q.batch * s.key_seq + begin;
  for (int64_t j = 0; j < queries; j += lanes()) {
    const auto document = hn::LoadU(DI(), t.document + j);
    for (int64_t i = 0; i < keys; ++i) {
      float* score = t.score_t + i * kTileQueries + j;
      const auto same = hn::RebindMask(D(), hn::Eq(document, hn::Set(DI(), key_start[i])));
      store(hn::IfThenElse(same, load(score), set(-std::numeric_limits<float>::infinity())), score);
    }
  }
}

// The rows of a tile of q (or of a similar operand), scaled, transposed to [head_dim kTileQueries], and also as [count
// padded head_dim].
template <typename T>
void load_queries(const AttentionSetting& s, const QueryTile& q, const T* from, float scale, float* transposed,
                  float* rows) {
  const int64_t wide = padded(s.head_dim);
  for (int64_t i = 0; i < q.count; ++i) {
    float* row = rows + i * wide;
    map(Copy(), s.head_dim, row, from + s.row_of(q.batch, q.head, q.begin + i) * s.head_dim);
    std::fill(row + s.head_dim, row + wide, 0.0f);
  }
  for (int64_t d = 0; d < s.head_dim; ++d) {
    float* to = transposed + d * kTileQueries;
    for (int64_t i = 0; i < q.count; ++i) to[i] = rows[i * wide + d] * scale;
    std::fill(to + q.count, to + kTileQueries, 0.0f);
  }
}

// The rows of a tile of k or v in fp32, zero-padded to whole vectors if they are the columns of a product.
template <typename T>
Tile load_keys(const AttentionSetting& s, const QueryTile& q, int64_t begin, int64_t count, const T* from, bool columns,
               float* packed) {
  const T* first = from + s.key_row(q.batch, begin, q.head) * s.head_dim;
  const int64_t row = s.kv_heads * s.head_dim, wide = padded(s.head_dim);
  if constexpr (std::is_same_v<T, float>) {
    if (!columns || whole_vectors(s.head_dim) == s.head_dim) return {first, row, 1};
  }
  for (int64_t i = 0; i < count; ++i) {
    map(Copy(), s.head_dim, packed + i * wide, first + i * row);
    std::fill(packed + i * wide + s.head_dim, packed + (i + 1) * wide, 0.0f);
  }
  return {packed, wide, 1};
}

// For a vector of queries: which of them see the key at `key`.
struct Sight {
  hn::Vec<DI> start, last;
  bool bounded;  // whether keys may be too late

  Sight(const AttentionSetting& s, const AttentionScratch& t, int64_t lane)
      : start(hn::LoadU(DI(), t.start + lane)),
        last(hn::LoadU(DI(), t.last + lane)),
        bounded(s.causal || s.window > 0) {}
  // `score` if visible, else -infinity.
  HWY_INLINE V operator()(int32_t key, V score) const {
    const auto k = hn::Set(DI(), key);
    auto hidden = hn::Lt(k, start);
    if (bounded) hidden = hn::Or(hidden, hn::Lt(last, k));
    return hn::IfThenElse(hn::RebindMask(D(), hidden), set(-std::numeric_limits<float>::infinity()), score);
  }
};

// The maximum scores of a tile for the queries from j on; if `masked`, sets invisible scores to -infinity first.
HWY_INLINE V hide_and_find_most(const AttentionSetting& s, const AttentionScratch& t, int64_t j, int64_t begin,
                                int64_t keys, bool masked) {
  float* score = t.score_t + j;
  V most = set(-std::numeric_limits<float>::infinity());
  if (!masked) {
    for (int64_t i = 0; i < keys; ++i) most = hn::Max(most, load(score + i * kTileQueries));
    return most;
  }
  const Sight sight(s, t, j);
  for (int64_t i = 0; i < keys; ++i) {
    const V x = sight(s.key_place[begin + i], load(score + i * kTileQueries));
    store(x, score + i * kTileQueries);
    most = hn::Max(most, x);
  }
  return most;
}

// Dropout factors of a vector of queries, key by key.
class Kept {
 public:
  Kept(const AttentionSetting& s, const AttentionScratch& t, int64_t lane)
      : key_(s.random_key),
        step_(s.random_step),
        together_(s.whole_keys % 4 == 0),
        threshold_(dropout_threshold(s.dropout)),
        factor_(set(static_cast<float>(1.0 / (1.0 - s.dropout)))),
        low_(hn::LoadU(DU(), t.block_low + lane)),
        high_(hn::LoadU(DU(), t.block_high + lane)),
        word_(hn::LoadU(DU(), t.word + lane)),
        words_{word_, word_, word_, word_} {}

  HWY_INLINE V operator()(int32_t key) {
    if (key < 0) return zero();
    if (!together_) return kept_factor(word_of_each(static_cast<uint32_t>(key)), threshold_, factor_);
    // Four consecutive keys share a block, for all queries.
    if (key >> 2 != block_) {
      block_ = key >> 2;
      VU low = low_, high = high_;
      add_blocks(low, high, hn::Set(DU(), static_cast<uint32_t>(block_)));
      words_ = random_blocks(key_, step_, low, high);
    }
    const int at = key & 3;
    return kept_factor(at == 0   ? words_.w0
                       : at == 1 ? words_.w1
                       : at == 2 ? words_.w2
                                 : words_.w3,
                       threshold_, factor_);
  }

 private:
  HWY_INLINE VU word_of_each(uint32_t key) const {
    const VU at = hn::Add(word_, hn::Set(DU(), key & 3)), three = hn::Set(DU(), 3u);
    VU low = low_, high = high_;
    add_blocks(low, high, hn::Add(hn::Set(DU(), key >> 2), hn::ShiftRight<2>(at)));
    const Words w = random_blocks(key_, step_, low, high);
    const VU which = hn::And(at, three);
    VU word = hn::IfThenElse(hn::Eq(which, hn::Set(DU(), 1u)), w.w1, w.w0);
    word = hn::IfThenElse(hn::Eq(which, hn::Set(DU(), 2u)), w.w2, word);
    return hn::IfThenElse(hn::Eq(which, three), w.w3, word);
  }

  std::array<uint32_t, 2> key_;
  uint64_t step_;
  bool together_;
  uint32_t threshold_;
  V factor_;
  VU low_, high_, word_;
  Words words_;
  int32_t block_ = -1;
};

template <typename T>
float row_dot(const T* x, const T* y, int64_t n) {
  V sum = zero();
  int64_t i = 0;
  for (; i + lanes() <= n; i += lanes()) sum = hn::MulAdd(load(x + i), load(y + i), sum);
  if (i < n) sum = hn::MulAdd(load_n(x + i, n - i), load_n(y + i, n - i), sum);
  return sum_of_lanes(sum);
}

// For the gradient of a tile: t.top is the log-sum-exp, t.sum the sum of do * o.
template <typename T>
void load_row_ends(const KernelCall& call, const AttentionSetting& s, const AttentionScratch& t, const QueryTile& q) {
  using In = AttentionGradIn;
  const auto in = [&](size_t i) { return reinterpret_cast<const T*>(call.ins[i].data); };
  const float* lse = reinterpret_cast<const float*>(call.ins[In::kLse].data);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::fill_n(t.top, kTileQueries, 0.0f);
  std::fill_n(t.sum, kTileQueries, 0.0f);
  for (int64_t i = 0; i < q.count; ++i) {
    const int64_t row = s.row_of(q.batch, q.head, q.begin + i);
    // A row that sees nothing has probability 0: exp(x - infinity).
    t.top[i] = lse[row] == -kInfinity ? kInfinity : lse[row];
    t.sum[i] = row_dot(in(In::kDo) + row * s.head_dim, in(In::kO) + row * s.head_dim, s.head_dim);
  }
}

// The rows of a block of keys, from [block head_dim, padded].
template <typename T>
void store_keys(const AttentionSetting& s, int64_t b, int64_t head, base::Range keys, const float* from, T* to) {
  for (int64_t i = keys.begin; i < keys.end; ++i)
    map(Copy(), s.head_dim, to + s.key_row(b, i, head) * s.head_dim, from + (i - keys.begin) * padded(s.head_dim));
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
