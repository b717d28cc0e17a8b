// Tiled attention with an online softmax (Dao et al. 2022, "FlashAttention", algorithm 1; Dao 2023, section 3.1).
// Scores are stored transposed, with queries along the vector lanes, so that the softmax needs no horizontal sum and
// keys and values are read in place.
#include <atomic>
#include <cmath>

#include "kintsugi/kernels/cpu/attention_bf16.h"
#include "kintsugi/kernels/cpu/attention_few.h"
#include "kintsugi/kernels/cpu/attention_setting.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/attention.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

// Exponentiates the scores of a tile of keys relative to the running maximum; updates the running sums.
inline void softmax_tile(const AttentionSetting& s, const AttentionScratch& t, int64_t queries, int64_t begin,
                         int64_t keys, bool masked) {
  for (int64_t j = 0; j < queries; j += lanes()) {
    float* score = t.score_t + j;
    const V before = load(t.top + j);
    const V top = hn::Max(before, hide_and_find_most(s, t, j, begin, keys, masked));
    const V factor = exp_of(hn::Sub(before, top));
    V sum = hn::Mul(load(t.sum + j), factor);
    for (int64_t i = 0; i < keys; ++i) {
      const V p = exp_of(hn::Sub(load(score + i * kTileQueries), top));
      store(p, score + i * kTileQueries);
      sum = hn::Add(sum, p);
    }
    store(top, t.top + j);
    store(sum, t.sum + j);
    store(factor, t.factor + j);
    if (s.dropout > 0) {
      Kept kept(s, t, j);
      for (int64_t i = 0; i < keys; ++i) {
        float* p = score + i * kTileQueries;
        store(hn::Mul(load(p), kept(s.key_place[begin + i])), p);
      }
    }
  }
}

// q, o: [batch seq kv_heads group head_dim], k, v: [batch key_seq kv_heads head_dim], lse: [batch seq kv_heads group]
template <typename T>
void attend(const KernelCall& call, const AttentionSetting& s, const AttentionScratch& t, int64_t b, int64_t head,
            int64_t tile) {
  const T* q_in = reinterpret_cast<const T*>(call.ins[AttentionIn::kQ].data);
  const T* k = reinterpret_cast<const T*>(call.ins[AttentionIn::kK].data);
  const T* v = reinterpret_cast<const T*>(call.ins[AttentionIn::kV].data);
  T* o = reinterpret_cast<T*>(call.outs[AttentionOut::kO].data);
  float* lse = reinterpret_cast<float*>(call.outs[AttentionOut::kLse].data);
  const int64_t wide = padded(s.head_dim), columns = whole_vectors(s.head_dim);
  const QueryTile q = query_tile(s, t, b, head, tile);
  const int64_t queries = whole_vectors(q.count);
  load_queries(s, q, q_in, s.scale, t.q_t, t.rows);
  std::fill_n(t.top, kTileQueries, -1e30f);  // below every score, and finite
  std::fill_n(t.sum, kTileQueries, 0.0f);

  bool first = true;
  for (int64_t kt = 0; kt < s.num_key_tiles(); ++kt) {
    const Seen sees = seen(s, q, kt);
    if (sees == Seen::none) continue;
    const int64_t begin = kt * kTileKeys, keys = std::min(kTileKeys, s.key_seq - begin);
    const Tile key_rows = load_keys(s, q, begin, keys, k, false, t.keys);
    multiply_tile(keys, queries, s.head_dim, key_rows, t.q_t, kTileQueries, t.score_t, kTileQueries, false);
    if (s.softcap > 0) cap_scores(s, t, queries, keys, 1.0f);
    if (s.key_starts && sees == Seen::some) hide_other_documents(s, t, q, queries, begin, keys);
    softmax_tile(s, t, queries, begin, keys, sees == Seen::some);
    if (!first) {
      for (int64_t i = 0; i < q.count; ++i) {
        if (t.factor[i] != 1.0f) map(Times{t.factor[i]}, columns, t.rows + i * wide, t.rows + i * wide);
      }
    }
    const Tile values = load_keys(s, q, begin, keys, v, true, t.values);
    multiply_tile(q.count, columns, keys, {t.score_t, 1, kTileQueries}, values.data, values.row, t.rows, wide, !first);
    first = false;
  }
  for (int64_t i = 0; i < q.count; ++i) {
    const int64_t row = s.row_of(b, head, q.begin + i);
    const RowEnd end = end_of_row(s, t, head, q.begin, i);
    lse[row] = end.lse;
    if (end.factor == 0) {
      std::fill_n(o + row * s.head_dim, s.head_dim, T());
    } else {
      map(Times{end.factor}, s.head_dim, o + row * s.head_dim, t.rows + i * wide);
    }
  }
}

void attend_any(const KernelCall& call, const AttentionSetting& s, AttentionScratch& t, int64_t head, int64_t tile) {
  const int64_t b = head / s.kv_heads;
  switch (call.ins[AttentionIn::kQ].dtype()) {
    case tensor::DType::bf16:
      return attend_bf16(call, s, t, head, tile);
    case tensor::DType::f16:
      return attend<tensor::f16>(call, s, t, b, head % s.kv_heads, tile);
    default:
      return attend<float>(call, s, t, b, head % s.kv_heads, tile);
  }
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(attend_any);

int64_t attention_workspace(const KernelShapes& shapes) {
  Scratch scratch;
  take_attention({Types(shapes.ins), Types(shapes.outs), shapes.attributes}, false, shapes.threads, scratch);
  return scratch.bytes();
}

void attention(const KernelCall& call) {
  attend(call, attention_setting(call, false));
}

void attend(const KernelCall& call, const AttentionSetting& s) {
  if (is_few(s)) return attend_few(call, s);
  const auto attend = HWY_DYNAMIC_DISPATCH(attend_any);
  // Assigns whole heads to threads if that balances or there are enough; otherwise tiles, last ones first, since they
  // see the most keys. Tiles are independent: the assignment does not change a bit.
  const int threads = call.team.size();
  const bool whole = s.heads() % threads == 0 || s.heads() >= 8 * threads;
  const int64_t tiles = s.query_tiles(), at_once = whole ? tiles : 1;
  std::atomic<int64_t> next{0};
  call.team.run([&](int thread) {
    for (int64_t i = next.fetch_add(at_once); i < s.heads() * tiles; i = next.fetch_add(at_once))
      for (int64_t tile = i; tile < i + at_once; ++tile)
        attend(call, s, s.threads[thread], tile / tiles, tiles - 1 - tile % tiles);
  });
}

}  // namespace kintsugi::kernels::cpu
#endif
