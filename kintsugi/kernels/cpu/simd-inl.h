// fp32 vectors, loaded from and stored to fp32, bf16 and fp16. Included once per SIMD target: define
// HWY_TARGET_INCLUDE, include simd_targets.h, hwy/foreach_target.h, then this.
#if defined(KINTSUGI_SIMD_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KINTSUGI_SIMD_INL
#undef KINTSUGI_SIMD_INL
#else
#define KINTSUGI_SIMD_INL
#endif

#include <cmath>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "kintsugi/tensor/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using DI = hn::RebindToSigned<D>;
using DU = hn::RebindToUnsigned<D>;
constexpr int64_t kMaxLanes = HWY_MAX_BYTES / 4;

HWY_INLINE int64_t lanes() {
  return static_cast<int64_t>(hn::Lanes(D()));
}
HWY_INLINE V set(float x) {
  return hn::Set(D(), x);
}
HWY_INLINE V zero() {
  return hn::Zero(D());
}

HWY_INLINE V load(const float* p) {
  return hn::LoadU(D(), p);
}
HWY_INLINE V load(const tensor::bf16* p) {
  const hn::Rebind<uint16_t, D> d16;
  const auto bits = hn::PromoteTo(DU(), hn::LoadU(d16, reinterpret_cast<const uint16_t*>(p)));
  return hn::BitCast(D(), hn::ShiftLeft<16>(bits));
}
HWY_INLINE void store(V v, float* p) {
  hn::StoreU(v, D(), p);
}
// Rounds to nearest even; NaN stays NaN.
HWY_INLINE void store(V v, tensor::bf16* p) {
  const auto bits = hn::BitCast(DU(), v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(DU(), 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(DU(), 0x7FFFu))));
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(DU(), 0x40u));
  const auto result = hn::IfThenElse(hn::RebindMask(DU(), hn::Eq(v, v)), rounded, quiet);
  const hn::Rebind<uint16_t, D> d16;
  hn::StoreU(hn::TruncateTo(d16, result), d16, reinterpret_cast<uint16_t*>(p));
}

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
HWY_INLINE V load(const tensor::f16* p) {
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::PromoteTo(D(), hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(p)));
}
HWY_INLINE void store(V v, tensor::f16* p) {
  const hn::Rebind<hwy::float16_t, D> d16;
  hn::StoreU(hn::DemoteTo(d16, v), d16, reinterpret_cast<hwy::float16_t*>(p));
}
#else
// For CPUs not known to convert with the right rounding.
HWY_INLINE V load(const tensor::f16* p) {
  HWY_ALIGN float wide[kMaxLanes];
  for (int64_t i = 0; i < lanes(); ++i) wide[i] = static_cast<float>(p[i]);
  return hn::Load(D(), wide);
}
HWY_INLINE void store(V v, tensor::f16* p) {
  HWY_ALIGN float wide[kMaxLanes];
  hn::Store(v, D(), wide);
  for (int64_t i = 0; i < lanes(); ++i) p[i] = tensor::f16(wide[i]);
}
#endif

// The first n lanes, n < lanes(); a load zeros the others, a store leaves them unchanged.
template <typename T>
HWY_INLINE V load_n(const T* p, int64_t n) {
  T some[kMaxLanes];
  std::memset(static_cast<void*>(some), 0, sizeof(some));
  std::memcpy(static_cast<void*>(some), p, static_cast<size_t>(n) * sizeof(T));
  return load(some);
}
template <typename T>
HWY_INLINE void store_n(V v, T* p, int64_t n) {
  T some[kMaxLanes];
  store(v, some);
  std::memcpy(static_cast<void*>(p), some, static_cast<size_t>(n) * sizeof(T));
}

// out[i] = f(in[i]...) for n elements.
template <typename F, typename Out, typename... In>
HWY_INLINE void map(const F& f, int64_t n, Out* out, const In*... in) {
  int64_t i = 0;
  for (const int64_t N = lanes(); i + N <= n; i += N) store(f(load(in + i)...), out + i);
  if (i < n) store_n(f(load_n(in + i, n - i)...), out + i, n - i);
}

// Prefetches the line of *p into the L2 cache, for which a core has more outstanding misses than for L1: one core of an
// AMD EPYC reads 13 GB/s with prefetches to L1, 30 with these.
template <typename T>
HWY_INLINE void fetch_second(const T* p) {
  __builtin_prefetch(p, 0, 2);
}

// The sum of the lanes, in one order for all CPUs with the same vector length.
HWY_INLINE float sum_of_lanes(V v) {
  return hn::GetLane(hn::SumOfLanes(D(), v));
}

// The dot products of y with `kRows` rows of x, with row stride `row`, to `sums`. Several vectors at a time, to hide
// latency; the bits of a sum do not depend on kRows.
template <int kRows, typename T>
HWY_INLINE void dots(const float* x, int64_t row, const T* y, int64_t n, float* sums) {
  constexpr int kSums = 4;
  V sum[kRows][kSums];
  for (int r = 0; r < kRows; ++r)
    for (int s = 0; s < kSums; ++s) sum[r][s] = zero();
  int64_t i = 0;
  for (; i + kSums * lanes() <= n; i += kSums * lanes()) {
    HWY_UNROLL(4)
    for (int s = 0; s < kSums; ++s) {
      const V some = load(y + i + s * lanes());
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) sum[r][s] = hn::MulAdd(load(x + r * row + i + s * lanes()), some, sum[r][s]);
    }
  }
  for (; i + lanes() <= n; i += lanes())
    for (int r = 0; r < kRows; ++r) sum[r][0] = hn::MulAdd(load(x + r * row + i), load(y + i), sum[r][0]);
  for (int r = 0; r < kRows; ++r) {
    sums[r] = sum_of_lanes(hn::Add(hn::Add(sum[r][0], sum[r][1]), hn::Add(sum[r][2], sum[r][3])));
    for (int64_t j = i; j < n; ++j) sums[r] = std::fma(x[r * row + j], static_cast<float>(y[j]), sums[r]);
  }
}

// Calls f with a value of float, bf16 or f16.
template <typename F>
HWY_INLINE void for_type(tensor::DType dtype, const F& f) {
  switch (dtype) {
    case tensor::DType::f32:
      return f(float{});
    case tensor::DType::bf16:
      return f(tensor::bf16{});
    case tensor::DType::f16:
      return f(tensor::f16{});
    default:
      tensor::not_floating(dtype);
  }
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
