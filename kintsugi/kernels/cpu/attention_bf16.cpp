// Tiled attention with an online softmax, as in attention.cpp, on the bf16 unit.
#include "kintsugi/kernels/cpu/attention_bf16.h"

#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/attention_bf16.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/attention_narrow-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

// Of key i of a tile; accumulated before dropout. 0 past the last key.
HWY_INLINE V next_exponential(const AttentionSetting& s, const float* score, V scale, V top, int64_t begin, int64_t i,
                              int64_t keys, Kept& kept, V& sum) {
  if (i >= keys) return zero();
  const V p = exp_below(hn::MulSub(load(score + i * kTileQueries), scale, top));
  sum = hn::Add(sum, p);
  return s.dropout > 0 ? hn::Mul(p, kept(s.key_place[begin + i])) : p;
}

// Exponentiates a tile of scores relative to the running maximum and packs it as b; updates the running sums.
void softmax_pairs(const AttentionSetting& s, const AttentionScratch& t, int64_t queries, int64_t begin, int64_t keys,
                   bool masked) {
  const V scale = scale_of_scores(s);
  for (int64_t j = 0; j < queries; j += lanes()) {
    float* score = t.score_t + j;
    const V before = load(t.top + j);
    const V most = hide_and_find_most(s, t, j, begin, keys, masked);
    const V top = hn::Max(before, hn::Mul(most, scale));
    const V factor = exp_of(hn::Sub(before, top));
    V sum = hn::Mul(load(t.sum + j), factor);
    Kept kept(s, t, j);
    for (int64_t i = 0; i < in_tiles(keys); i += 2) {
      const V even = next_exponential(s, score, scale, top, begin, i, keys, kept, sum);
      const V odd = next_exponential(s, score, scale, top, begin, i + 1, keys, kept, sum);
      hn::StoreU(pair_of(rounded_bits(even), rounded_bits(odd)), DU(), pair_place(t.narrow.p_panels, i, j));
    }
    store(top, t.top + j);
    store(sum, t.sum + j);
    store(factor, t.factor + j);
  }
}

// Sums of values so far are relative to an older maximum.
void lower_sums(const AttentionScratch& t, int64_t rows, int64_t queries) {
  for (int64_t j = 0; j < queries; j += lanes()) {
    const V factor = load(t.factor + j);
    if (hn::AllTrue(D(), hn::Eq(factor, set(1.0f)))) continue;
    for (int64_t d = 0; d < rows; ++d) {
      float* x = t.narrow.sums_t + d * kTileQueries + j;
      store(hn::Mul(load(x), factor), x);
    }
  }
}

// Computes o from the sums, and lse.
void finish(const KernelCall& call, const AttentionSetting& s, const AttentionScratch& t, const Bf16Unit& unit,
            const QueryTile& q, int64_t tile, bool none) {
  tensor::bf16* o = reinterpret_cast<tensor::bf16*>(call.outs[AttentionOut::kO].data);
  float* lse = reinterpret_cast<float*>(call.outs[AttentionOut::kLse].data);
  const int64_t wide = padded(s.head_dim);
  if (none) std::fill_n(t.narrow.sums_t, wide * kTileQueries, 0.0f);
  for (int64_t i = 0; i < q.count; ++i) {
    const RowEnd end = end_of_row(s, t, q.head, q.begin, i);
    t.factor[i] = end.factor;
    lse[s.row_of(q.batch, q.head, q.begin + i)] = end.lse;
  }
  const int64_t queries = in_tiles(q.count);
  for (int64_t d = 0; d < wide; ++d)
    for (int64_t j = 0; j < queries; j += lanes()) {
      const int64_t at = d * kTileQueries + j;
      const V factor = load(t.factor + j);
      const V x = hn::Mul(load(t.narrow.sums_t + at), factor);
      store(hn::IfThenElse(hn::Eq(factor, zero()), zero(), x), t.narrow.q + at);
    }
  store_queries(unit, s, q.batch, q.head, tile, t.narrow.q, t.narrow.q_panels, o);
}

void attend_narrow(const KernelCall& call, const AttentionSetting& s, AttentionScratch& t, int64_t head, int64_t tile) {
  const auto in = [&](size_t i) { return reinterpret_cast<const tensor::bf16*>(call.ins[i].data); };
  const int64_t b = head / s.kv_heads, of_sample = head % s.kv_heads, wide = padded(s.head_dim);
  const Bf16Unit& unit = bf16_unit();
  NarrowScratch& n = t.narrow;
  if (n.held != head) {
    const base::Range all = {0, s.num_key_tiles()};
    pack_keys(unit, s, b, of_sample, all, in(AttentionIn::kK), n.keys);
    turn_keys(unit, s, b, of_sample, all, in(AttentionIn::kV), n.turned);
    n.held = head;
  }
  const QueryTile q = query_tile(s, t, b, of_sample, tile);
  pack_queries(unit, query_rows(s, b, of_sample, tile, in(AttentionIn::kQ), n.q), n.q_panels);
  std::fill_n(t.top, kTileQueries, -1e30f);  // below every score, and finite
  std::fill_n(t.sum, kTileQueries, 0.0f);
  const int64_t queries = in_tiles(q.count);
  bool first = true;
  unit.begin();
  for (int64_t kt = 0; kt < s.num_key_tiles(); ++kt) {
    const Seen sees = seen(s, q, kt);
    if (sees == Seen::none) continue;
    const int64_t begin = kt * kTileKeys, keys = std::min(kTileKeys, s.key_seq - begin);
    multiply_panels(unit, {.rows = in_tiles(keys),
                           .columns = queries,
                           .a_panel = kTile * wide,
                           .b_panel = kTile * wide,
                           .first = {.steps = wide / kStep,
                                     .a = n.keys + kt * kTileKeys * wide,
                                     .a_row = kStep,
                                     .a_step = kSquare,
                                     .b = n.q_panels,
                                     .c = t.score_t,
                                     .c_row = kTileQueries}});
    finish_scores(s, t, q, queries, begin, keys, sees);
    softmax_pairs(s, t, queries, begin, keys, sees == Seen::some);
    if (!first) lower_sums(t, wide, queries);
    multiply_panels(unit, {.rows = wide,
                           .columns = queries,
                           .a_panel = kTilePanel,
                           .b_panel = kTilePanel,
                           .first = {.steps = in_tiles(keys) / kStep,
                                     .a = n.turned + kt * kTileKeys * wide,
                                     .a_row = kStep,
                                     .a_step = kSquare,
                                     .b = n.p_panels,
                                     .c = n.sums_t,
                                     .c_row = kTileQueries,
                                     .adds = !first}});
    first = false;
  }
  unit.end();
  finish(call, s, t, unit, q, tile, first);
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(attend_narrow);

void attend_bf16(const KernelCall& call, const AttentionSetting& s, AttentionScratch& t, int64_t head, int64_t tile) {
  HWY_DYNAMIC_DISPATCH(attend_narrow)(call, s, t, head, tile);
}

}  // namespace kintsugi::kernels::cpu
#endif
