#include "kintsugi/kernels/cpu/channel_rows.h"

#include <algorithm>

#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/channel_rows.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/activation-inl.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kBlock = 64;  // rows summed in fp32

template <typename T>
HWY_INLINE V load_some(const T* p, int64_t n) {
  return n < lanes() ? load_n(p, n) : load(p);
}

// sums[c] += the first lanes of a vector.
HWY_INLINE void add_wide(double* sums, V v, int64_t n) {
  HWY_ALIGN float some[kMaxLanes];
  hn::Store(v, D(), some);
  for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(some[i]);
}

template <typename T>
HWY_INLINE const T* at(const std::byte* x) {
  return reinterpret_cast<const T*>(x);
}

}  // namespace

// In fp64, so that the sums of any split of the rows give the same rounded factors.
void sum_channels_part(tensor::DType dtype, const std::byte* x_bytes, int64_t channels, base::Range rows,
                       double* sums) {
  std::fill_n(sums, 2 * channels, 0.0);
  for_type(dtype, [&]<typename T>(T) {
    const T* x = at<T>(x_bytes);
    for (int64_t begin = rows.begin; begin < rows.end; begin += kBlock)
      for (int64_t c = 0; c < channels; c += lanes()) {
        const int64_t n = std::min(lanes(), channels - c);
        double sum[kMaxLanes] = {}, squares[kMaxLanes] = {};
#if HWY_TARGET == HWY_SCALAR
        for (int64_t r = begin; r < std::min(rows.end, begin + kBlock); ++r) {
          const auto v = static_cast<double>(static_cast<float>(x[r * channels + c]));
          sum[0] += v, squares[0] += v * v;
        }
#else
        const hn::RepartitionToWide<D> wide;
        const hn::Half<D> half;
        auto sum0 = hn::Zero(wide), sum1 = sum0, squares0 = sum0, squares1 = sum0;
        for (int64_t r = begin; r < std::min(rows.end, begin + kBlock); ++r) {
          const V v = load_some(x + r * channels + c, n);
          const auto v0 = hn::PromoteTo(wide, hn::LowerHalf(half, v)), v1 = hn::PromoteTo(wide, hn::UpperHalf(half, v));
          sum0 = hn::Add(sum0, v0), sum1 = hn::Add(sum1, v1);
          squares0 = hn::MulAdd(v0, v0, squares0), squares1 = hn::MulAdd(v1, v1, squares1);
        }
        const size_t some = hn::Lanes(wide);
        hn::StoreU(sum0, wide, sum), hn::StoreU(sum1, wide, sum + some);
        hn::StoreU(squares0, wide, squares), hn::StoreU(squares1, wide, squares + some);
#endif
        for (int64_t i = 0; i < n; ++i) sums[c + i] += sum[i], sums[channels + c + i] += squares[i];
      }
  });
}

void sum_products_part(tensor::DType dtype, const std::byte* x_bytes, const std::byte* dy_bytes, int64_t channels,
                       base::Range rows, const float* mean, double* sums) {
  std::fill_n(sums, 2 * channels, 0.0);
  for_type(dtype, [&]<typename T>(T) {
    const T *x = at<T>(x_bytes), *dy = at<T>(dy_bytes);
    for (int64_t begin = rows.begin; begin < rows.end; begin += kBlock)
      for (int64_t c = 0; c < channels; c += lanes()) {
        const int64_t n = std::min(lanes(), channels - c);
        const V centre = load_some(mean + c, n);
        V products = zero(), sum = zero();
        for (int64_t r = begin; r < std::min(rows.end, begin + kBlock); ++r) {
          const V g = load_some(dy + r * channels + c, n);
          sum = hn::Add(sum, g);
          products = hn::MulAdd(hn::Sub(load_some(x + r * channels + c, n), centre), g, products);
        }
        add_wide(sums + c, products, n), add_wide(sums + channels + c, sum, n);
      }
  });
}

void scale_rows_part(tensor::DType dtype, const std::byte* x, std::byte* y, int64_t channels, base::Range rows,
                     const float* a, const float* b) {
  for_type(dtype, [&]<typename T>(T) {
    for (int64_t r = rows.begin; r < rows.end; ++r)
      map([](V v, V by, V shift) HWY_ATTR { return hn::MulAdd(v, by, shift); }, channels,
          reinterpret_cast<T*>(y) + r * channels, at<T>(x) + r * channels, a, b);
  });
}

namespace {

template <bool kRelu, typename T>
void normalize_channels(const T* x, const T* added, T* y, int64_t channels, base::Range rows, const float* a,
                        const float* b) {
  const auto end = [](V v) HWY_ATTR { return kRelu ? Relu::value(v) : v; };
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t at = r * channels;
    if (added) {
      map([&](V v, V by, V shift, V other) HWY_ATTR { return end(hn::Add(hn::MulAdd(v, by, shift), other)); }, channels,
          y + at, x + at, a, b, added + at);
    } else {
      map([&](V v, V by, V shift) HWY_ATTR { return end(hn::MulAdd(v, by, shift)); }, channels, y + at, x + at, a, b);
    }
  }
}

}  // namespace

void normalize_rows_part(tensor::DType dtype, const NormalizedRows& n, int64_t channels, base::Range rows,
                         const float* a, const float* b) {
  for_type(dtype, [&]<typename T>(T) {
    const T *x = at<T>(n.x), *added = at<T>(n.added);
    T* y = reinterpret_cast<T*>(n.y);
    n.relu ? normalize_channels<true>(x, added, y, channels, rows, a, b)
           : normalize_channels<false>(x, added, y, channels, rows, a, b);
  });
}

void combine_rows_part(tensor::DType dtype, const std::byte* x, const std::byte* dy, std::byte* dx, int64_t channels,
                       base::Range rows, const float* a, const float* b, const float* c) {
  for_type(dtype, [&]<typename T>(T) {
    for (int64_t r = rows.begin; r < rows.end; ++r)
      map([](V g, V v, V by, V slope, V shift) HWY_ATTR { return hn::MulAdd(g, by, hn::MulAdd(v, slope, shift)); },
          channels, reinterpret_cast<T*>(dx) + r * channels, at<T>(dy) + r * channels, at<T>(x) + r * channels, a, b,
          c);
  });
}

void add_weighted_part(tensor::DType dtype, const std::byte* x, float weight, int64_t n, float* sums) {
  for_type(dtype, [&]<typename T>(T) {
    const V by = set(weight);
    map([by](V sum, V v) HWY_ATTR { return hn::MulAdd(v, by, sum); }, n, sums, static_cast<const float*>(sums),
        at<T>(x));
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(sum_channels_part);
HWY_EXPORT(sum_products_part);
HWY_EXPORT(scale_rows_part);
HWY_EXPORT(normalize_rows_part);
HWY_EXPORT(combine_rows_part);
HWY_EXPORT(add_weighted_part);

void sum_channels(tensor::DType dtype, const std::byte* x, int64_t channels, base::Range rows, double* sums) {
  HWY_DYNAMIC_DISPATCH(sum_channels_part)(dtype, x, channels, rows, sums);
}

void sum_products(tensor::DType dtype, const std::byte* x, const std::byte* dy, int64_t channels, base::Range rows,
                  const float* mean, double* sums) {
  HWY_DYNAMIC_DISPATCH(sum_products_part)(dtype, x, dy, channels, rows, mean, sums);
}

void scale_rows(tensor::DType dtype, const std::byte* x, std::byte* y, int64_t channels, base::Range rows,
                const float* a, const float* b) {
  HWY_DYNAMIC_DISPATCH(scale_rows_part)(dtype, x, y, channels, rows, a, b);
}

void normalize_rows(tensor::DType dtype, const NormalizedRows& n, int64_t channels, base::Range rows, const float* a,
                    const float* b) {
  HWY_DYNAMIC_DISPATCH(normalize_rows_part)(dtype, n, channels, rows, a, b);
}

void combine_rows(tensor::DType dtype, const std::byte* x, const std::byte* dy, std::byte* dx, int64_t channels,
                  base::Range rows, const float* a, const float* b, const float* c) {
  HWY_DYNAMIC_DISPATCH(combine_rows_part)(dtype, x, dy, dx, channels, rows, a, b, c);
}

void add_weighted(tensor::DType dtype, const std::byte* x, float weight, int64_t n, float* sums) {
  HWY_DYNAMIC_DISPATCH(add_weighted_part)(dtype, x, weight, n, sums);
}

}  // namespace kintsugi::kernels::cpu
#endif
