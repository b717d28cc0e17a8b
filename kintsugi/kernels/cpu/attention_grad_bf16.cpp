// The gradient of tiled attention, as in attention_grad.cpp, on the bf16 unit.
#include "kintsugi/kernels/cpu/attention_bf16.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/attention_grad_bf16.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/attention_narrow-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

// Loop invariants of the gradient for a vector of queries.
struct GradRows {
  V lse, delta, scale, of_score, of_cap;
  Sight sight;
  Kept kept;

  GradRows(const AttentionSetting& s, const AttentionScratch& t, int64_t j)
      : lse(load(t.top + j)),
        delta(load(t.sum + j)),
        scale(set(s.scale)),
        of_score(scale_of_scores(s)),
        of_cap(set(1.0f / s.softcap)),
        sight(s, t, j),
        kept(s, t, j) {}
};

// For key i of a tile: writes the probability (with dropout) to n.p, and the score gradient, with its rounded bits, to
// n.dscore. Scores are already capped, if at all, and determine the slope of the cap.
template <bool kCapped>
HWY_INLINE VU next_gradient(const AttentionSetting& s, const AttentionScratch& t, int64_t begin, int64_t i, int64_t j,
                            bool masked, GradRows& rows) {
  const int64_t at = i * kTileQueries + j;
  V x = load(t.score_t + at), dp = load(t.dscore_t + at);
  [[maybe_unused]] V slope;
  if constexpr (kCapped) {
    const V part = hn::Mul(x, rows.of_cap);
    slope = hn::Max(hn::NegMulAdd(part, part, set(1.0f)), zero());  // a masked score is minus infinity
  }
  if (masked) x = rows.sight(s.key_place[begin + i], x);
  const V p = exp_below(hn::MulSub(x, rows.of_score, rows.lse));
  V dropped = p;
  if (s.dropout > 0) {
    const V factor = rows.kept(s.key_place[begin + i]);
    dropped = hn::Mul(p, factor);
    dp = hn::Mul(dp, factor);
  }
  V d = hn::Mul(hn::Mul(p, hn::Sub(dp, rows.delta)), rows.scale);
  if constexpr (kCapped) d = hn::Mul(d, slope);
  const VU bits = rounded_bits(d);
  store_rounded(rounded_bits(dropped), t.narrow.p + at);
  store_rounded(bits, t.narrow.dscore + at);
  return bits;
}

// Computes probabilities and score gradients from scores and do.v of a tile, and packs both as b to n.p_panels. t.top
// is the log-sum-exp, t.sum the sum of do * o.
template <bool kCapped>
void grad_pairs(const AttentionSetting& s, const AttentionScratch& t, int64_t queries, int64_t begin, int64_t keys,
                bool masked) {
  const NarrowScratch& n = t.narrow;
  for (int64_t j = 0; j < queries; j += lanes()) {
    GradRows rows(s, t, j);
    int64_t i = 0;
    for (; i + 2 <= keys; i += 2) {
      const VU even = next_gradient<kCapped>(s, t, begin, i, j, masked, rows);
      const VU odd = next_gradient<kCapped>(s, t, begin, i + 1, j, masked, rows);
      hn::StoreU(pair_of(even, odd), DU(), pair_place(n.p_panels, i, j));
    }
    if (i < keys) {
      const VU even = next_gradient<kCapped>(s, t, begin, i, j, masked, rows);
      hn::StoreU(pair_of(even, hn::Zero(DU())), DU(), pair_place(n.p_panels, i, j));
      i += 2;
    }
    for (; i < in_tiles(keys); i += 2) hn::StoreU(hn::Zero(DU()), DU(), pair_place(n.p_panels, i, j));
  }
}

// The five matmuls of a tile of queries and one of keys, whose panels begin at `panel`, and whose sums at `sum`.
void tile_back(const AttentionSetting& s, const AttentionScratch& t, const Bf16Unit& unit, const QueryTile& q,
               int64_t kt, int64_t first_key, float* dq) {
  const NarrowScratch& n = t.narrow;
  const Seen sees = seen(s, q, kt);
  if (sees == Seen::none) return;
  const int64_t wide = padded(s.head_dim), begin = kt * kTileKeys, keys = std::min(kTileKeys, s.key_seq - begin);
  const int64_t rows = in_tiles(keys), queries = in_tiles(q.count), panel = (begin - first_key) * wide;
  PanelProduct scores = {.rows = rows, .columns = queries, .a_panel = kTile * wide, .b_panel = kTile * wide};
  scores.first = {.steps = wide / kStep, .a_row = kStep, .a_step = kSquare, .c_row = kTileQueries};
  scores.first.a = n.keys + panel, scores.first.b = n.q_panels, scores.first.c = t.score_t;
  multiply_panels(unit, scores);
  scores.first.a = n.values + panel, scores.first.b = n.do_panels, scores.first.c = t.dscore_t;
  multiply_panels(unit, scores);
  finish_scores(s, t, q, queries, begin, keys, sees);
  (s.softcap > 0 ? grad_pairs<true> : grad_pairs<false>)(s, t, queries, begin, keys, sees == Seen::some);

  PanelProduct to_keys = {.rows = rows, .columns = wide, .a_panel = kTile * kTileQueries, .b_panel = kTilePanel};
  to_keys.first = {.steps = queries / kStep, .a_row = kTileQueries, .a_step = kStep, .c_row = wide, .adds = true};
  to_keys.first.a = n.p, to_keys.first.b = n.do_columns, to_keys.first.c = t.dv + panel;
  multiply_panels(unit, to_keys);
  to_keys.first.a = n.dscore, to_keys.first.b = n.q_columns, to_keys.first.c = t.dk + panel;
  multiply_panels(unit, to_keys);

  multiply_panels(unit, {.rows = wide,
                         .columns = queries,
                         .a_panel = kTilePanel,
                         .b_panel = kTilePanel,
                         .first = {.steps = rows / kStep,
                                   .a = n.turned + panel,
                                   .a_row = kStep,
                                   .a_step = kSquare,
                                   .b = n.p_panels,
                                   .c = dq,
                                   .c_row = kTileQueries,
                                   .adds = true}});
}

void store_narrow_dq(const KernelCall& call, const AttentionSetting& s, AttentionScratch& t, int64_t head, int64_t tile,
                     const float* sum) {
  map(Copy(), padded(s.head_dim) * kTileQueries, t.narrow.q, sum);
  store_queries(bf16_unit(), s, head / s.kv_heads, head % s.kv_heads, tile, t.narrow.q, t.narrow.q_panels,
                reinterpret_cast<tensor::bf16*>(call.outs[AttentionGradOut::kDq].data));
}

void attend_back_narrow(const KernelCall& call, const AttentionSetting& s, AttentionScratch& t, int64_t head,
                        int64_t block, float* parts) {
  using In = AttentionGradIn;
  const auto in = [&](size_t i) { return reinterpret_cast<const tensor::bf16*>(call.ins[i].data); };
  const auto out = [&](size_t i) { return reinterpret_cast<tensor::bf16*>(call.outs[i].data); };
  const int64_t b = head / s.kv_heads, of_sample = head % s.kv_heads, wide = padded(s.head_dim);
  const base::Range keys = keys_of_block(s, block), tiles = tiles_of_block(s, block);
  const Bf16Unit& unit = bf16_unit();
  const NarrowScratch& n = t.narrow;
  pack_keys(unit, s, b, of_sample, tiles, in(In::kK), n.keys);
  pack_keys(unit, s, b, of_sample, tiles, in(In::kV), n.values);
  turn_keys(unit, s, b, of_sample, tiles, in(In::kK), n.turned);
  std::fill_n(t.dk, tiles.size() * kTileKeys * wide, 0.0f);
  std::fill_n(t.dv, tiles.size() * kTileKeys * wide, 0.0f);
  unit.begin();
  for (int64_t tile = 0; tile < s.query_tiles(); ++tile) {
    const QueryTile q = query_tile(s, t, b, of_sample, tile);
    float* dq = parts ? parts + tile * kTileQueries * wide : n.sums_t;
    std::fill_n(dq, kTileQueries * wide, 0.0f);
    if (sees_none(s, q, tiles)) {
      if (!parts) store_narrow_dq(call, s, t, head, tile, dq);
      continue;
    }
    const QueryRows q_rows = query_rows(s, b, of_sample, tile, in(In::kQ), n.q);
    const QueryRows do_rows = query_rows(s, b, of_sample, tile, in(In::kDo), n.d_o);
    pack_queries(unit, q_rows, n.q_panels);
    pack_queries(unit, do_rows, n.do_panels);
    pack_query_rows(unit, q_rows, n.q_columns);
    pack_query_rows(unit, do_rows, n.do_columns);
    load_row_ends<tensor::bf16>(call, s, t, q);
    for (int64_t kt = tiles.begin; kt < tiles.end; ++kt) tile_back(s, t, unit, q, kt, keys.begin, dq);
    if (!parts) store_narrow_dq(call, s, t, head, tile, dq);
  }
  unit.end();
  store_keys(s, b, of_sample, keys, t.dk, out(AttentionGradOut::kDk));
  store_keys(s, b, of_sample, keys, t.dv, out(AttentionGradOut::kDv));
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(attend_back_narrow);
HWY_EXPORT(store_narrow_dq);

void attend_back_bf16(const KernelCall& call, const AttentionSetting& s, AttentionScratch& t, int64_t head,
                      int64_t block, float* parts) {
  HWY_DYNAMIC_DISPATCH(attend_back_narrow)(call, s, t, head, block, parts);
}

void store_dq_bf16(const KernelCall& call, const AttentionSetting& s, AttentionScratch& t, int64_t head, int64_t tile,
                   const float* sum) {
  HWY_DYNAMIC_DISPATCH(store_narrow_dq)(call, s, t, head, tile, sum);
}

}  // namespace kintsugi::kernels::cpu
#endif
