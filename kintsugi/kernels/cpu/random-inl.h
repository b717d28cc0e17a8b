// Philox4x32-10 (kernels/random.h) on vectors of counters, compiled per SIMD target.
#if defined(KINTSUGI_RANDOM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KINTSUGI_RANDOM_INL
#undef KINTSUGI_RANDOM_INL
#else
#define KINTSUGI_RANDOM_INL
#endif

#include <array>

#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

using VU = hn::Vec<DU>;

struct Words {
  VU w0, w1, w2, w3;
};

// The low and high halves of x * factor.
HWY_INLINE void multiply_wide(VU x, uint32_t factor, VU& low, VU& high) {
#if HWY_TARGET == HWY_SCALAR
  const uint64_t product = static_cast<uint64_t>(hn::GetLane(x)) * factor;
  low = hn::Set(DU(), static_cast<uint32_t>(product));
  high = hn::Set(DU(), static_cast<uint32_t>(product >> 32));
#else
  const hn::Repartition<uint64_t, DU> d64;
  const VU f = hn::Set(DU(), factor);
  const auto even = hn::MulEven(x, f);
  const auto odd = hn::MulEven(hn::BitCast(DU(), hn::ShiftRight<32>(hn::BitCast(d64, x))), f);
  low = hn::OddEven(hn::BitCast(DU(), hn::ShiftLeft<32>(odd)), hn::BitCast(DU(), even));
  high = hn::OddEven(hn::BitCast(DU(), odd), hn::BitCast(DU(), hn::ShiftRight<32>(even)));
#endif
}

// random_block for the blocks with these low and high halves.
HWY_INLINE Words random_blocks(std::array<uint32_t, 2> key, uint64_t stream, VU block_low, VU block_high) {
  VU c0 = block_low, c1 = block_high, c2 = hn::Set(DU(), static_cast<uint32_t>(stream)),
     c3 = hn::Set(DU(), static_cast<uint32_t>(stream >> 32));
  uint32_t k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    VU a_low, a_high, b_low, b_high;
    multiply_wide(c0, 0xD2511F53u, a_low, a_high);
    multiply_wide(c2, 0xCD9E8D57u, b_low, b_high);
    c0 = hn::Xor(hn::Xor(b_high, c1), hn::Set(DU(), k0));
    c1 = b_low;
    c2 = hn::Xor(hn::Xor(a_high, c3), hn::Set(DU(), k1));
    c3 = a_low;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

// `low` plus n, with the carry to `high`.
HWY_INLINE void add_blocks(VU& low, VU& high, VU n) {
  const VU sum = hn::Add(low, n);
  const auto carries = hn::Lt(hn::Xor(hn::BitCast(DI(), sum), hn::Set(DI(), INT32_MIN)),
                              hn::Xor(hn::BitCast(DI(), low), hn::Set(DI(), INT32_MIN)));
  high = hn::Sub(high, hn::BitCast(DU(), hn::VecFromMask(DI(), carries)));
  low = sum;
}

// 1 / (1 - p) if the word is at least the threshold, else 0.
HWY_INLINE V kept_factor(VU word, uint32_t threshold, V factor) {
  const auto low = hn::Set(DI(), INT32_MIN);
  const auto dropped =
      hn::Lt(hn::Xor(hn::BitCast(DI(), word), low), hn::Xor(hn::BitCast(DI(), hn::Set(DU(), threshold)), low));
  return hn::IfThenZeroElse(hn::RebindMask(D(), dropped), factor);
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
