#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/cpu/images.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/batch_norm.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kBlock = 64;  // rows that are summed in fp32

template <typename T>
HWY_INLINE V load_some(const T* p, int64_t n) {
  return n < lanes() ? load_n(p, n) : load(p);
}

// sums[c] += a vector's first lanes.
HWY_INLINE void add_wide(double* sums, V v, int64_t n) {
  HWY_ALIGN float some[kMaxLanes];
  hn::Store(v, D(), some);
  for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(some[i]);
}

}  // namespace

// x: [rows channels]; sums: [2 channels]
void batch_statistics_rows(const KernelCall& call, int64_t channels, base::Range rows, double* sums) {
  std::fill_n(sums, 2 * channels, 0.0);
  for_type(call.ins[0].dtype(), [&]<typename T>(T) {
    const T* x = reinterpret_cast<const T*>(call.ins[0].data);
    for (int64_t begin = rows.begin; begin < rows.end; begin += kBlock)
      for (int64_t c = 0; c < channels; c += lanes()) {
        const int64_t n = std::min(lanes(), channels - c);
        V sum = zero(), squares = zero();
        for (int64_t r = begin; r < std::min(rows.end, begin + kBlock); ++r) {
          const V v = load_some(x + r * channels + c, n);
          sum = hn::Add(sum, v), squares = hn::MulAdd(v, v, squares);
        }
        add_wide(sums + c, sum, n), add_wide(sums + channels + c, squares, n);
      }
  });
}

// y = x * scale + shift
void batch_norm_rows(const KernelCall& call, int64_t channels, base::Range rows, const float* scale,
                     const float* shift) {
  for_type(call.outs[0].dtype(), [&]<typename T>(T) {
    for (int64_t r = rows.begin; r < rows.end; ++r)
      map([](V x, V a, V b) HWY_ATTR { return hn::MulAdd(x, a, b); }, channels,
          reinterpret_cast<T*>(call.outs[0].data) + r * channels,
          reinterpret_cast<const T*>(call.ins[BatchNormIn::kX].data) + r * channels, scale, shift);
  });
}

// sums: [2 channels], of dy * (x - mean), and of dy
void batch_norm_sums_rows(const KernelCall& call, int64_t channels, base::Range rows, const float* mean, double* sums) {
  std::fill_n(sums, 2 * channels, 0.0);
  for_type(call.ins[BatchNormSumsIn::kX].dtype(), [&]<typename T>(T) {
    const T *x = reinterpret_cast<const T*>(call.ins[BatchNormSumsIn::kX].data),
            *dy = reinterpret_cast<const T*>(call.ins[BatchNormSumsIn::kDy].data);
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

// dx = dy * a + x * b + c
void batch_norm_grad_rows(const KernelCall& call, int64_t channels, base::Range rows, const float* a, const float* b,
                          const float* c) {
  using In = BatchNormGradIn;
  for_type(call.outs[0].dtype(), [&]<typename T>(T) {
    for (int64_t r = rows.begin; r < rows.end; ++r)
      map([](V dy, V x, V by, V slope, V shift) HWY_ATTR { return hn::MulAdd(dy, by, hn::MulAdd(x, slope, shift)); },
          channels, reinterpret_cast<T*>(call.outs[0].data) + r * channels,
          reinterpret_cast<const T*>(call.ins[In::kDy].data) + r * channels,
          reinterpret_cast<const T*>(call.ins[In::kX].data) + r * channels, a, b, c);
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(batch_statistics_rows);
HWY_EXPORT(batch_norm_rows);
HWY_EXPORT(batch_norm_sums_rows);
HWY_EXPORT(batch_norm_grad_rows);

namespace {

using tensor::DType;
using tensor::View;

int64_t channels_of(const tensor::Shape& x) {
  return x[x.rank() - 1].size;
}
int64_t rows_of(const View& x) {
  return x.elements() / std::max<int64_t>(channels_of(x.shape()), 1);
}

// An element of a floating operand.
double at(const View& x, int64_t i) {
  double value = 0;
  tensor::dispatch(x.dtype(), [&]<typename T>(T) {
    value = static_cast<double>(static_cast<tensor::arithmetic_t<T>>(reinterpret_cast<const T*>(x.data)[i]));
  });
  return value;
}

struct Moments {
  double mean = 0, inverse_deviation = 0;
};

Moments moments(const KernelCall& call, double mean, double variance) {
  return {mean, 1 / std::sqrt(variance + call.attributes.number("epsilon"))};
}
// Of a channel, by the sums of the batch.
Moments moments_of(const KernelCall& call, const View& statistics, int64_t channel) {
  const auto count = static_cast<double>(call.attributes.integer("count"));
  const double mean = at(statistics, channel) / count,
               squares = at(statistics, channels_of(statistics.shape()) + channel) / count;
  return moments(call, mean, std::max(squares - mean * mean, 0.0));
}

// Sums of each thread, added in their order to those of the first.
template <typename F>
double* sum_rows(const KernelCall& call, int64_t rows, int64_t channels, Scratch& scratch, const F& part) {
  const int64_t size = (2 * channels + 7) / 8 * 8;
  const int threads = call.team.size();
  double* sums = scratch.take<double>(size * threads);
  call.team.run([&](int thread) { part(base::share(rows, thread, threads), sums + thread * size); });
  for (int t = 1; t < threads; ++t)
    for (int64_t i = 0; i < 2 * channels; ++i) sums[i] += sums[t * size + i];
  return sums;
}

void take_sums(int64_t channels, int threads, Scratch& scratch) {
  scratch.take<double>((2 * channels + 7) / 8 * 8 * threads);
}

constexpr int64_t kGrain = 16;  // rows

}  // namespace

bool batch_norm_takes(const Operands& o) {
  return is_fast(o.ins[0].dtype) && is_fast(o.outs[0].dtype);
}
bool batch_statistics_takes(const Operands& o) {
  return is_fast(o.ins[0].dtype);
}

int64_t batch_statistics_workspace(const KernelShapes& shapes) {
  Scratch scratch;
  take_sums(channels_of(shapes.ins[0]->shape), shapes.threads, scratch);
  return scratch.bytes();
}

void batch_statistics(const KernelCall& call) {
  const int64_t channels = channels_of(call.ins[0].shape());
  Scratch scratch(call.workspace);
  const auto part = HWY_DYNAMIC_DISPATCH(batch_statistics_rows);
  const double* sums = sum_rows(call, rows_of(call.ins[0]), channels, scratch,
                                [&](base::Range r, double* to) { part(call, channels, r, to); });
  std::copy_n(sums, 2 * channels, call.outs[0].as<double>().data());
}

// Three factors of each channel, at most.
int64_t batch_norm_workspace(const KernelShapes& shapes) {
  Scratch scratch;
  for (int i = 0; i < 3; ++i) scratch.take<float>(channels_of(shapes.ins[0]->shape));
  return scratch.bytes();
}

void batch_norm(const KernelCall& call) {
  using In = BatchNormIn;
  const int64_t channels = channels_of(call.ins[In::kX].shape());
  Scratch scratch(call.workspace);
  float *scale = scratch.take<float>(channels), *shift = scratch.take<float>(channels);
  for (int64_t c = 0; c < channels; ++c) {
    const Moments m = call.ins[In::kStatistics].data
                          ? moments_of(call, call.ins[In::kStatistics], c)
                          : moments(call, at(call.ins[In::kMean], c), at(call.ins[In::kVariance], c));
    const double by = at(call.ins[In::kGamma], c) * m.inverse_deviation;
    scale[c] = static_cast<float>(by);
    shift[c] = static_cast<float>(at(call.ins[In::kBeta], c) - m.mean * by);
  }
  const auto part = HWY_DYNAMIC_DISPATCH(batch_norm_rows);
  call.team.for_shares(rows_of(call.ins[In::kX]), kGrain,
                       [&](base::Range r, int) { part(call, channels, r, scale, shift); });
}

int64_t batch_norm_sums_workspace(const KernelShapes& shapes) {
  const int64_t channels = channels_of(shapes.ins[BatchNormSumsIn::kX]->shape);
  Scratch scratch;
  scratch.take<float>(channels);
  take_sums(channels, shapes.threads, scratch);
  return scratch.bytes();
}

void batch_norm_sums(const KernelCall& call) {
  using In = BatchNormSumsIn;
  const View& x = call.ins[In::kX];
  const int64_t channels = channels_of(x.shape());
  Scratch scratch(call.workspace);
  float* mean = scratch.take<float>(channels);
  for (int64_t c = 0; c < channels; ++c)
    mean[c] = static_cast<float>(moments_of(call, call.ins[In::kStatistics], c).mean);
  const auto part = HWY_DYNAMIC_DISPATCH(batch_norm_sums_rows);
  const double* sums = sum_rows(call, rows_of(x), channels, scratch,
                                [&](base::Range r, double* to) { part(call, channels, r, mean, to); });
  const auto put = [&](size_t output, int64_t c, double value) {
    tensor::dispatch(call.outs[output].dtype(), [&]<typename T>(T) {
      T& to = reinterpret_cast<T*>(call.outs[output].data)[c];
      using A = tensor::arithmetic_t<T>;
      to =
          static_cast<T>(call.accumulates(output) ? static_cast<A>(to) + static_cast<A>(value) : static_cast<A>(value));
    });
  };
  for (int64_t c = 0; c < channels; ++c) {
    const Moments m = moments_of(call, call.ins[In::kStatistics], c);
    // The mean above was rounded.
    const double products = sums[c] + (static_cast<double>(mean[c]) - m.mean) * sums[channels + c];
    put(BatchNormSumsOut::kDgamma, c, products * m.inverse_deviation);
    put(BatchNormSumsOut::kDbeta, c, sums[channels + c]);
  }
}

void batch_norm_grad(const KernelCall& call) {
  using In = BatchNormGradIn;
  const int64_t channels = channels_of(call.ins[In::kX].shape());
  const auto count = static_cast<double>(call.attributes.integer("count"));
  Scratch scratch(call.workspace);
  float *a = scratch.take<float>(channels), *b = scratch.take<float>(channels), *shift = scratch.take<float>(channels);
  for (int64_t c = 0; c < channels; ++c) {
    const Moments m = moments_of(call, call.ins[In::kStatistics], c);
    const double by = at(call.ins[In::kGamma], c) * m.inverse_deviation,
                 slope = -by * m.inverse_deviation * at(call.ins[In::kDgamma], c) / count;
    a[c] = static_cast<float>(by);
    b[c] = static_cast<float>(slope);
    shift[c] = static_cast<float>(-slope * m.mean - by * at(call.ins[In::kDbeta], c) / count);
  }
  const auto part = HWY_DYNAMIC_DISPATCH(batch_norm_grad_rows);
  call.team.for_shares(rows_of(call.ins[In::kX]), kGrain,
                       [&](base::Range r, int) { part(call, channels, r, a, b, shift); });
}

}  // namespace kintsugi::kernels::cpu
#endif
