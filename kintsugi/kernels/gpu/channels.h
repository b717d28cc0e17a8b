// Passes over x [samples rows channels]: sums over the rows of each sample, and maps with factors for each channel.
//
// A thread has N adjacent channels. It sums a few rows in fp32, relative to a pivot for each channel, and adds what it
// finds in fp64, so that sums of squares keep deviations much smaller than the mean. The sums of a block's threads are
// added in order; those of slices of the rows are left in the workspace, which a second kernel adds. The assignment of
// rows depends only on the shapes.
#pragma once

#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/strides.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

constexpr int kChannelThreads = 256;

struct ChannelRows {
  int64_t samples = 1, rows = 1, channels = 1;
};

// samples = 1: all dims but the last are rows.
inline ChannelRows channel_rows(const tensor::Shape& shape, bool by_sample) {
  ChannelRows made{.samples = by_sample ? shape[0].size : 1, .channels = width(shape)};
  made.rows = shape.elements() == 0 ? 0 : shape.elements() / made.channels / made.samples;
  return made;
}

// Adjacent threads along the channels, each with n of them.
inline int channels_across(int64_t channels, int n) {
  int across = 1;
  while (across < 32 && static_cast<int64_t>(across) * n < channels) across *= 2;
  return across;
}

// --- Sums

// Two sums of a channel.
struct ChannelSum {
  double first, second;

  __device__ ChannelSum& operator+=(const ChannelSum& other) {
    first += other.first, second += other.second;
    return *this;
  }
};

// Group norm: the group of each local channel; batch norm: each channel is one.
struct ChannelGroups {
  bool grouped = false;
  int64_t groups = 1, each = 1;  // groups of the whole; channels of a group
  LocalIndex index;

  // -1 at padding.
  __device__ __forceinline__ int64_t operator()(int64_t channel) const {
    if (!grouped) return channel;
    const int64_t global = index[channel];
    return global < 0 ? -1 : global / each;
  }
};

// Mean and 1 / deviation.
struct Moment {
  double mean = 0;
  float inverse = 0;
};

// Moments of the channels of each sample: from sums of x and of its squares, [samples moment groups], or as given.
struct Moments {
  const double* statistics = nullptr;
  AnyData mean, variance;
  ChannelGroups group;
  double share = 1, epsilon = 0;  // share: 1 / the number of elements

  __device__ __forceinline__ Moment of_group(int64_t sample, int64_t g) const {
    const double* const sums = statistics + sample * 2 * group.groups;
    const double average = sums[g] * share, spread = sums[group.groups + g] * share - average * average;
    return {average, 1 / sqrtf(static_cast<float>((spread > 0 ? spread : 0) + epsilon))};
  }
  // Zeros at padding.
  __device__ __forceinline__ Moment operator()(int64_t sample, int64_t channel) const {
    const int64_t g = group(channel);
    if (g < 0) return {};
    if (statistics != nullptr) return of_group(sample, g);
    float average[1], spread[1];
    mean.load(average, channel), variance.load(spread, channel);
    return {average[0], 1 / sqrtf(static_cast<float>(spread[0] + epsilon))};
  }
};

struct ChannelSums {
  ChannelRows x;
  int64_t slices = 1, slice = 1;  // of the rows of a sample; rows of each
  int across = 1, side = 1;       // threads and blocks along the channels

  int64_t bytes() const { return x.samples * slices * x.channels * static_cast<int64_t>(sizeof(ChannelSum)); }
};

inline ChannelSums channel_sums(const ChannelRows& x, DType dtype, int n = 0) {
  const int wide = static_cast<int>(16 / tensor::size_of(dtype));
  ChannelSums s{.x = x};
  const auto side = [&](int each) {
    return quotient_up(x.channels, static_cast<int64_t>(channels_across(x.channels, each)) * each);
  };
  // Independent of the alignment, as the workspace is.
  const int64_t want = kProcessors * 2 / std::max<int64_t>(x.samples * side(wide), 1),
                most = x.rows / (kChannelThreads / channels_across(x.channels, wide) * 8);
  s.slices = std::max<int64_t>(std::min(want, most), 1);
  s.slice = std::max<int64_t>(quotient_up(x.rows, s.slices), 1);
  s.slices = std::max<int64_t>(quotient_up(x.rows, s.slice), 1);
  if (n == 0) n = wide;
  s.across = channels_across(x.channels, n), s.side = static_cast<int>(side(n));
  return s;
}

// kPairs: the sums of dy * (x - pivot) and of dy, where the pivot is the mean, rounded to fp32 (0 without moments).
// Otherwise the sums of x and of x * x. to: [samples slices channels]
template <typename T, int N, bool kPairs>
__global__ void __launch_bounds__(kChannelThreads)
    sum_channels(ChannelSums s, Moments moments, const T* x, const T* dy, ChannelSum* to) {
  __shared__ ChannelSum scratch[kChannelThreads];
  wait_for_kernels_before();
  let_next_begin();
  constexpr int kTogether = 2, kRun = 32;  // rows: loaded at a time; summed in fp32
  const int thread = static_cast<int>(threadIdx.x), lane = thread % s.across, group = thread / s.across,
            groups = kChannelThreads / s.across;
  const int64_t block = blockIdx.x, side = block % s.side, slice = block / s.side % s.slices,
                sample = block / s.side / s.slices;
  const int64_t channel = (side * s.across + lane) * N, begin = slice * s.slice,
                end = begin + s.slice < s.x.rows ? begin + s.slice : s.x.rows;
  ChannelSum sum[N] = {};
  if (channel < s.x.channels && begin + group < end) {
    const int64_t origin = sample * s.x.rows * s.x.channels + channel;
    float pivot[N];
    if constexpr (kPairs) {
      GPU_UNROLL
      for (int i = 0; i < N; ++i)
        pivot[i] = moments.statistics == nullptr ? 0 : static_cast<float>(moments(sample, channel + i).mean);
    } else {
      Packed<T, N> first;
      first.load(x + origin + (begin + group) * s.x.channels);
      GPU_UNROLL
      for (int i = 0; i < N; ++i) pivot[i] = first[i];
    }
    for (int64_t run = begin + group; run < end; run += static_cast<int64_t>(kRun) * groups) {
      float a[N] = {}, b[N] = {};
      int rows = 0;
      for (int r = 0; r < kRun && run + static_cast<int64_t>(r) * groups < end; r += kTogether) {
        Packed<T, N> xs[kTogether] = {}, dys[kTogether] = {};
        bool has[kTogether];
        GPU_UNROLL
        for (int k = 0; k < kTogether; ++k) {
          const int64_t row = run + static_cast<int64_t>(r + k) * groups;
          has[k] = row < end;
          if (has[k]) xs[k].load(x + origin + row * s.x.channels);
          if (kPairs && has[k]) dys[k].load(dy + origin + row * s.x.channels);
        }
        GPU_UNROLL
        for (int k = 0; k < kTogether; ++k) {
          if (!has[k]) continue;
          ++rows;
          GPU_UNROLL
          for (int i = 0; i < N; ++i) {
            const float u = xs[k][i] - pivot[i];
            const float v = kPairs ? dys[k][i] : u;
            a[i] = kPairs ? fmaf(v, u, a[i]) : a[i] + u;
            b[i] = kPairs ? b[i] + v : fmaf(u, u, b[i]);
          }
        }
      }
      GPU_UNROLL
      for (int i = 0; i < N; ++i) {
        const double p = kPairs ? 0 : pivot[i], u = a[i], v = b[i];
        sum[i] += kPairs ? ChannelSum{u, v} : ChannelSum{u + rows * p, v + 2 * p * u + rows * p * p};
      }
    }
  }
  ChannelSum* const out = to + (sample * s.slices + slice) * s.x.channels;
  GPU_UNROLL
  for (int i = 0; i < N; ++i) {
    __syncthreads();
    scratch[thread] = sum[i];
    __syncthreads();
    if (group != 0 || channel >= s.x.channels) continue;
    ChannelSum all = sum[i];
    for (int g = 1; g < groups; ++g) all += scratch[g * s.across + lane];
    out[channel + i] = all;
  }
}

template <bool kPairs>
ChannelSums launch_channel_sums(const KernelCall& call, const ChannelRows& rows, const Moments& moments, const View& x,
                                const View& dy, ChannelSum* to) {
  ChannelSums made;
  dispatch(call.kind, x.dtype(), [&]<typename T>(T) {
    const auto sum = [&]<int N>(std::integral_constant<int, N>) {
      made = channel_sums(rows, x.dtype(), N);
      const int64_t blocks = made.side * made.slices * rows.samples;
      launch_overlapping(*call.stream, dim3(static_cast<unsigned>(blocks)), dim3(kChannelThreads), 0,
                         {bytes_at(to, made.bytes())}, sum_channels<T, N, kPairs>, made, moments, data<T>(x),
                         data<T>(dy), to);
    };
    constexpr int kN = kWide<T>;
    const bool wide = rows.channels % kN == 0 && all_wide(x.data, dy.data);
    wide ? sum(std::integral_constant<int, kN>()) : sum(std::integral_constant<int, 1>());
  });
  return made;
}

// Adds the sums that a functor gives for each output: `outputs(o)` are the items of output o, `term(o, item)` what one
// adds, and `put(o, sum)` stores it, in outputs of the call. 32 outputs per block; groups of threads take items in
// turn.
constexpr int kChannelJoins = 8;
template <typename F>
__global__ void __launch_bounds__(32 * kChannelJoins) join_channel_sums(F f, int64_t outputs) {
  __shared__ ChannelSum scratch[32 * kChannelJoins];
  wait_for_kernels_before();
  let_next_begin();
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, group = thread / 32;
  const int64_t output = static_cast<int64_t>(blockIdx.x) * 32 + lane;
  ChannelSum sum = {};
  if (output < outputs) {
    const int64_t items = f.items(output);
    for (int64_t i = group; i < items; i += kChannelJoins) sum += f.term(output, i);
  }
  scratch[thread] = sum;
  __syncthreads();
  if (group != 0 || output >= outputs) return;
  for (int g = 1; g < kChannelJoins; ++g) sum += scratch[g * 32 + lane];
  f.put(output, sum);
}
template <typename F>
void launch_join(const KernelCall& call, const F& f, int64_t outputs) {
  std::vector<device::Stream::Bytes> written;
  for (const View& y : call.outs) written.push_back(bytes_of(y));
  launch_overlapping(*call.stream, dim3(static_cast<unsigned>(quotient_up(outputs, 32))), dim3(32 * kChannelJoins), 0,
                     std::move(written), join_channel_sums<F>, f, outputs);
}

__device__ __forceinline__ void put_one(const AnyData& to, int64_t at, double value, bool add) {
  const float one[1] = {static_cast<float>(value)};
  to.put(at, one, add);
}
__device__ __forceinline__ float load_one(const AnyData& from, int64_t at) {
  float one[1];
  from.load(one, at);
  return one[0];
}

// --- Maps

// y = the value of `f` for x and, where given, `other`; `f.of<N>(sample, channel)` has the factors of N channels.
template <typename F, typename T, int N>
__global__ void __launch_bounds__(kChannelThreads)
    map_channels(F f, ChannelRows s, int across, int side, int parts, const T* x, const T* other, T* y, bool add) {
  wait_for_kernels_before();
  let_next_begin();
  const int thread = static_cast<int>(threadIdx.x), lane = thread % across, groups = kChannelThreads / across;
  const int64_t block = blockIdx.x, sample = block / side / parts, part = block / side % parts;
  const int64_t channel = (block % side * across + lane) * N, step = static_cast<int64_t>(groups) * parts;
  if (channel >= s.channels) return;
  const auto of = f.template of<N>(sample, channel);
  for (int64_t row = part * groups + thread / across; row < s.rows; row += step) {
    const int64_t at = (sample * s.rows + row) * s.channels + channel;
    Packed<T, N> xs, others = {};
    xs.load(x + at);
    if (other != nullptr) others.load(other + at);
    float made[N];
    GPU_UNROLL
    for (int i = 0; i < N; ++i) made[i] = of.value(i, xs[i], others[i]);
    put_run(y + at, made, add);
  }
}

template <typename F>
void launch_map(const KernelCall& call, const F& f, const ChannelRows& rows, const View& x, const View& other,
                const View& y) {
  if (y.elements() == 0) return;
  base::require(x.dtype() == y.dtype() && (other.data == nullptr || other.dtype() == y.dtype()), "kernel",
                "{} of {} to {} on a device", call.kind, name_of(x.dtype()), name_of(y.dtype()));
  dispatch(call.kind, y.dtype(), [&]<typename T>(T) {
    const auto map = [&]<int N>(std::integral_constant<int, N>) {
      const int across = channels_across(rows.channels, N);
      const int64_t side = quotient_up(rows.channels, static_cast<int64_t>(across) * N),
                    most = blocks_at_one_time(map_channels<F, T, N>, kChannelThreads),
                    parts = std::clamp<int64_t>(most / (side * rows.samples), 1,
                                                quotient_up(rows.rows, kChannelThreads / across));
      launch_overlapping(*call.stream, dim3(static_cast<unsigned>(side * parts * rows.samples)), dim3(kChannelThreads),
                         0, {bytes_of(y)}, map_channels<F, T, N>, f, rows, across, static_cast<int>(side),
                         static_cast<int>(parts), data<T>(x), data<T>(other), data<T>(y), call.accumulates(0));
    };
    constexpr int kN = kWide<T>;
    const bool wide = rows.channels % kN == 0 && all_wide(x.data, other.data, y.data);
    wide ? map(std::integral_constant<int, kN>()) : map(std::integral_constant<int, 1>());
  });
}

}  // namespace
}  // namespace kintsugi::KINTSUGI_GPU
