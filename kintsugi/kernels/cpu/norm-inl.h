// Layer norm (kCentered) and RMS norm on rows, once per SIMD target.
#if defined(KINTSUGI_NORM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KINTSUGI_NORM_INL
#undef KINTSUGI_NORM_INL
#else
#define KINTSUGI_NORM_INL
#endif

#include <cmath>

#include "kintsugi/kernels/cpu/columns-inl.h"
#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/norm.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

// The sum over a row of f(x...), with 0 in unused lanes.
template <typename F, typename... In>
HWY_INLINE float sum_row(const F& f, int64_t n, const In*... in) {
  V sum = zero();
  int64_t i = 0;
  for (; i + lanes() <= n; i += lanes()) sum = hn::Add(sum, f(load(in + i)...));
  float tail = 0;
  if (i < n) {
    HWY_ALIGN float some[kMaxLanes];
    hn::Store(f(load_n(in + i, n - i)...), D(), some);
    for (int64_t j = 0; j < n - i; ++j) tail += some[j];
  }
  return sum_of_lanes(sum) + tail;
}

struct Itself {
  HWY_INLINE V operator()(V x) const { return x; }
};
struct SquareFrom {
  float mean;
  HWY_INLINE V operator()(V x) const {
    const V d = hn::Sub(x, set(mean));
    return hn::Mul(d, d);
  }
};
struct ProductOf {
  HWY_INLINE V operator()(V x, V y) const { return hn::Mul(x, y); }
};
// Gamma as a factor, without and with an offset `by`.
struct PlainGamma {
  HWY_INLINE V operator()(V gamma) const { return gamma; }
};
struct OffsetGamma {
  float by;
  HWY_INLINE V operator()(V gamma) const { return hn::Add(gamma, set(by)); }
};
template <typename G>
struct ProductWithNormal {
  NormRow row;
  G of;
  HWY_INLINE V operator()(V x, V gamma, V dy) const {
    return hn::Mul(hn::Mul(hn::Mul(hn::Sub(x, set(row.mean)), set(row.scale)), of(gamma)), dy);
  }
};
template <typename G>
struct Normal {
  NormRow row;
  G of;
  HWY_INLINE V operator()(V x, V gamma) const {
    return hn::Mul(hn::Mul(hn::Sub(x, set(row.mean)), set(row.scale)), of(gamma));
  }
  HWY_INLINE V operator()(V x, V gamma, V beta) const {
    return hn::MulAdd(hn::Mul(hn::Sub(x, set(row.mean)), set(row.scale)), of(gamma), beta);
  }
};
// scale * (g - mean(g) - xhat * mean(g * xhat)), g = dy * gamma
template <typename G>
struct NormalBack {
  NormRow row;
  float mean_g, mean_gx;
  G of;
  HWY_INLINE V operator()(V x, V gamma, V dy) const {
    const V xhat = hn::Mul(hn::Sub(x, set(row.mean)), set(row.scale));
    const V g = hn::MulSub(dy, of(gamma), set(mean_g));
    return hn::Mul(hn::NegMulAdd(xhat, set(mean_gx), g), set(row.scale));
  }
};

template <bool kCentered, typename T>
HWY_INLINE NormRow norm_row(const T* x, int64_t n, float epsilon) {
  const float count = static_cast<float>(n);
  const float mean = kCentered ? sum_row(Itself(), n, x) / count : 0.0f;
  const float variance = sum_row(SquareFrom{mean}, n, x) / count;
  return {mean, 1.0f / std::sqrt(variance + epsilon)};
}

template <bool kCentered, typename G = PlainGamma>
void norm_rows(const KernelCall& call, const NormSizes& s, base::Range r, G of = {}) {
  using In = NormIn;
  for_type(call.ins[In::kX].dtype(), [&]<typename T>(T) {
    const T* gamma = reinterpret_cast<const T*>(call.ins[In::kGamma].data);
    const T* beta = nullptr;
    if constexpr (kCentered) beta = reinterpret_cast<const T*>(call.ins[In::kBeta].data);  // or null
    for (int64_t i = r.begin; i < r.end; ++i) {
      const T* x = reinterpret_cast<const T*>(call.ins[In::kX].data) + i * s.width;
      T* y = reinterpret_cast<T*>(call.outs[0].data) + i * s.width;
      const Normal<G> normal{norm_row<kCentered>(x, s.width, s.epsilon), of};
      if (beta) {
        map(normal, s.width, y, x, gamma, beta);
      } else {
        map(normal, s.width, y, x, gamma);
      }
    }
  });
}

// dx, and the statistics of each row for the column sums below.
template <bool kCentered, typename G = PlainGamma>
void norm_grad_rows(const KernelCall& call, const NormSizes& s, NormRow* statistics, base::Range r, G of = {}) {
  using In = NormGradIn;
  for_type(call.ins[In::kX].dtype(), [&]<typename T>(T) {
    const T* gamma = reinterpret_cast<const T*>(call.ins[In::kGamma].data);
    const float count = static_cast<float>(s.width);
    for (int64_t i = r.begin; i < r.end; ++i) {
      const T* x = reinterpret_cast<const T*>(call.ins[In::kX].data) + i * s.width;
      const T* dy = reinterpret_cast<const T*>(call.ins[In::kDy].data) + i * s.width;
      T* dx = reinterpret_cast<T*>(call.outs[NormGradOut::kDx].data) + i * s.width;
      const NormRow row = statistics[i] = norm_row<kCentered>(x, s.width, s.epsilon);
      const float mean_g = kCentered ? sum_row(ProductOf(), s.width, gamma, dy) / count : 0.0f;
      const float mean_gx = sum_row(ProductWithNormal<G>{row, of}, s.width, x, gamma, dy) / count;
      map(NormalBack<G>{row, mean_g, mean_gx, of}, s.width, dx, x, gamma, dy);
    }
  });
}

// dgamma and dbeta, if present, for a range of columns.
template <bool kCentered>
void norm_grad_columns(const KernelCall& call, const NormSizes& s, const NormRow* rows, base::Range columns) {
  using In = NormGradIn;
  using Out = NormGradOut;
  for_type(call.ins[In::kX].dtype(), [&]<typename T>(T) {
    const T* x = reinterpret_cast<const T*>(call.ins[In::kX].data);
    const T* dy = reinterpret_cast<const T*>(call.ins[In::kDy].data);
    if (call.outs[Out::kDgamma].data)
      add_columns(
          s.rows, columns, call.accumulates(Out::kDgamma), reinterpret_cast<float*>(call.outs[Out::kDgamma].data),
          [&](int64_t r, int64_t c) HWY_ATTR {
            const V xhat = hn::Mul(hn::Sub(load(x + r * s.width + c), set(rows[r].mean)), set(rows[r].scale));
            return hn::Mul(load(dy + r * s.width + c), xhat);
          },
          [&](int64_t r, int64_t c) {
            const int64_t at = r * s.width + c;
            return static_cast<float>(dy[at]) * ((static_cast<float>(x[at]) - rows[r].mean) * rows[r].scale);
          });
    if constexpr (kCentered) {
      if (!call.outs[Out::kDbeta].data) return;
      add_columns(
          s.rows, columns, call.accumulates(Out::kDbeta), reinterpret_cast<float*>(call.outs[Out::kDbeta].data),
          [&](int64_t r, int64_t c) HWY_ATTR { return load(dy + r * s.width + c); },
          [&](int64_t r, int64_t c) { return static_cast<float>(dy[r * s.width + c]); });
    }
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
