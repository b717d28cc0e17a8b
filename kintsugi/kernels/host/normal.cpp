// Vectors use another logarithm and cosine than scalars: they differ by a few units in the last place of fp64.
// Recomputes individually the numbers that these errors could round to another fp32.
#include "kintsugi/kernels/host/normal.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "kintsugi/kernels/cpu/simd_targets.h"
#include "kintsugi/kernels/random.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/host/normal.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/math-inl.h"
#include "kintsugi/kernels/cpu/random-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::host::HWY_NAMESPACE {
using namespace kernels::cpu::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

int64_t draw_vectors(std::array<uint32_t, 2>, uint64_t, double, float*, int64_t) {
  return 0;  // all individually
}

#else

using D64 = hn::Repartition<double, D>;
using V64 = hn::Vec<D64>;
using HalfWords = hn::Half<DU>;
using HalfD = hn::Half<D>;

HWY_INLINE V64 set64(double x) {
  return hn::Set(D64(), x);
}

// Words as fp64, which represents them exactly.
HWY_INLINE V64 as_numbers(hn::Vec<HalfWords> words) {
  const hn::RebindToSigned<HalfWords> d;
  return hn::Add(hn::PromoteTo(D64(), hn::Xor(hn::BitCast(d, words), hn::Set(d, INT32_MIN))), set64(0x1p31));
}

// A number per two words; NaN where its fp32 is uncertain: within a relative error of 2^-40, or where the cosine is
// near 0 and less accurate.
HWY_INLINE hn::Vec<HalfD> normal_of(hn::Vec<HalfWords> w0, hn::Vec<HalfWords> w1, double scale) {
  const V64 u = hn::Mul(hn::Add(as_numbers(w0), set64(0.5)), set64(0x1p-32)),
            v = hn::Mul(as_numbers(w1), set64(0x1p-32));
  const V64 cosine = hn::Cos(D64(), hn::Mul(set64(2.0 * std::numbers::pi), v));
  const V64 length = hn::Sqrt(hn::Mul(set64(-2.0), hn::Log(D64(), u)));
  const V64 x = hn::IfThenElse(hn::Ge(hn::Abs(cosine), set64(0x1p-8)), hn::Mul(set64(scale), hn::Mul(length, cosine)),
                               set64(std::numeric_limits<double>::quiet_NaN()));
  const auto less = hn::DemoteTo(HalfD(), hn::Mul(x, set64(1 - 0x1p-40))),
             more = hn::DemoteTo(HalfD(), hn::Mul(x, set64(1 + 0x1p-40)));
  return hn::IfThenElse(hn::Eq(less, more), less, hn::Set(HalfD(), std::numeric_limits<float>::quiet_NaN()));
}

HWY_INLINE V normal_of_all(VU w0, VU w1, double scale) {
  const auto low = normal_of(hn::LowerHalf(HalfWords(), w0), hn::LowerHalf(HalfWords(), w1), scale);
  const auto high = normal_of(hn::UpperHalf(HalfWords(), w0), hn::UpperHalf(HalfWords(), w1), scale);
  return hn::Combine(D(), high, low);
}

// Whole pairs, as many as vectors hold; returns the count of numbers.
int64_t draw_vectors(std::array<uint32_t, 2> key, uint64_t pair, double scale, float* to, int64_t pairs) {
  const int64_t n = lanes();
  int64_t i = 0;
  for (; i + n <= pairs; i += n) {
    const uint64_t first = pair + static_cast<uint64_t>(i);
    VU low = hn::Set(DU(), static_cast<uint32_t>(first)), high = hn::Set(DU(), static_cast<uint32_t>(first >> 32));
    add_blocks(low, high, hn::Iota(DU(), 0));
    const Words w = random_blocks(key, 0, low, high);
    const V even = normal_of_all(w.w0, w.w1, scale), odd = normal_of_all(w.w2, w.w3, scale);
    hn::StoreInterleaved2(even, odd, D(), to + 2 * i);
    if (hn::AllTrue(D(), hn::Eq(hn::Add(even, odd), hn::Add(even, odd)))) continue;
    for (int64_t at = 2 * i; at < 2 * (i + n); ++at)
      if (std::isnan(to[at])) to[at] = draw_normal(key, 2 * pair + static_cast<uint64_t>(at), scale);
  }
  return 2 * i;
}

#endif

}  // namespace kintsugi::kernels::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::host {

HWY_EXPORT(draw_vectors);

float draw_normal(std::array<uint32_t, 2> key, uint64_t index, double scale) {
  return static_cast<float>(scale * normal_pair(key, index / 2)[index % 2]);
}

void draw_normal(std::array<uint32_t, 2> key, uint64_t first, double scale, std::span<float> to) {
  const auto count = static_cast<int64_t>(to.size());
  const auto alone = [&](int64_t i) {
    to[static_cast<size_t>(i)] = draw_normal(key, first + static_cast<uint64_t>(i), scale);
  };
  int64_t i = 0;
  if (count > 0 && first % 2 == 1) alone(i++);
  i += HWY_DYNAMIC_DISPATCH(draw_vectors)(key, (first + static_cast<uint64_t>(i)) / 2, scale, to.data() + i,
                                          (count - i) / 2);
  for (; i < count; ++i) alone(i);
}

}  // namespace kintsugi::kernels::host
#endif
