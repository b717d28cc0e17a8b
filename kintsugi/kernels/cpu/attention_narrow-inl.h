// Operations on tiles of scores with bf16 matmuls, once per SIMD target.
#if defined(KINTSUGI_ATTENTION_NARROW_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KINTSUGI_ATTENTION_NARROW_INL
#undef KINTSUGI_ATTENTION_NARROW_INL
#else
#define KINTSUGI_ATTENTION_NARROW_INL
#endif

#include "kintsugi/kernels/cpu/attention-inl.h"
#include "kintsugi/kernels/cpu/attention_narrow.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

// bf16 in the high half of each lane, rounded to nearest. Ties, one in 65,536, round away from zero: a fourth of the
// work of ties to even. For results of arithmetic only: no NaN with low bits.
HWY_INLINE VU rounded_bits(V x) {
  return hn::Add(hn::BitCast(DU(), x), hn::Set(DU(), 0x8000u));
}

// Two adjacent k for a vector of columns, from rounded bits.
HWY_INLINE VU pair_of(VU even, VU odd) {
  return hn::Or(hn::ShiftRight<16>(even), hn::And(odd, hn::Set(DU(), 0xFFFF0000u)));
}

// From rounded bits.
HWY_INLINE void store_rounded(VU bits, tensor::bf16* p) {
  const hn::Rebind<uint16_t, D> d16;
  hn::StoreU(hn::TruncateTo(d16, hn::ShiftRight<16>(bits)), d16, reinterpret_cast<uint16_t*>(p));
}

// Location of the pair of keys i and i + 1 for queries from j on, in panels of b.
HWY_INLINE uint32_t* pair_place(tensor::bf16* panels, int64_t i, int64_t j) {
  tensor::bf16* at = panels + j / kTile * kTilePanel + i / kStep * kSquare + j % kTile / 16 * 512 + i % kStep * 16;
  return reinterpret_cast<uint32_t*>(at + j % 16 * 2);
}

// e^x for x up to about 0, as 2^n times a polynomial of the remainder, with relative error 3e-7 above e^-10: more than
// the 8 bits that its products use. Flushes to 0 far below -87; NaN stays NaN.
HWY_INLINE V exp_below(V x) {
  const V log2_e = set(1.44269504f);
#if HWY_TARGET == HWY_AVX3
  x = not_far_below(x);
#endif
  const V n = hn::Round(hn::Mul(x, log2_e));
  const V f = hn::MulSub(x, log2_e, n);
  V y = set(1.33952e-3f);
  y = hn::MulAdd(y, f, set(9.61833e-3f));
  y = hn::MulAdd(y, f, set(5.55040963e-2f));
  y = hn::MulAdd(y, f, set(2.40226462e-1f));
  y = hn::MulAdd(y, f, set(6.93147182e-1f));
  y = hn::MulAdd(y, f, set(1.0f));
#if HWY_TARGET == HWY_AVX3
  return V{_mm512_scalef_ps(y.raw, n.raw)};
#else
  const auto power = hn::ShiftLeft<23>(hn::ConvertTo(DI(), n));
  const V all = hn::BitCast(D(), hn::Add(hn::BitCast(DI(), y), power));
  const V known = hn::IfThenElse(hn::Lt(x, set(-87.0f)), zero(), all);
  return hn::IfThenElse(hn::Eq(x, x), known, x);
#endif
}

// Scale in softmax: `scale`, or 1 if capping has already applied it.
HWY_INLINE V scale_of_scores(const AttentionSetting& s) {
  return set(s.softcap > 0 ? 1.0f : s.scale);
}

// Caps and masks unscaled scores of a tile.
inline void finish_scores(const AttentionSetting& s, const AttentionScratch& t, const QueryTile& q, int64_t queries,
                          int64_t begin, int64_t keys, Seen sees) {
  if (s.softcap > 0) cap_scores(s, t, queries, keys, s.scale);
  if (s.key_starts && sees == Seen::some) hide_other_documents(s, t, q, queries, begin, keys);
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
