// Convolutions and gradients of their input as implicit matrix products: a row per position written, whose elements are
// gathered from the positions that its window reads.
#pragma once

#include "kintsugi/kernels/gpu/convolution_sizes.h"
#include "kintsugi/kernels/gpu/gemm_result.h"
#include "kintsugi/kernels/gpu/gemm_tiles.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

// from: x, or dy for the gradient. to: y, or dx.
struct ConvolutionRows {
  ConvolutionSizes sizes;
  AnyData from, w, to;
  bool wide_from = false, wide_w = false, wide_to = false;  // runs of 8, 8 and 2 elements are aligned to their size
  unsigned across = 1;                                      // blocks per row of blocks

  __device__ int depth(bool gradient) const { return gradient ? sizes.filters : sizes.channels; }  // of a tap
  __device__ int columns(bool gradient) const { return gradient ? sizes.channels : sizes.filters; }
};

// A dim: row position j is position to_first + j * to_step of `to`, and its tap t position first + j * step + t *
// tap_step of `from`, for weight w_first + t * w_step.
struct RowsAxis {
  int rows, first, step, tap_step, taps;
  int begin, end, from;       // present positions of `from`, and all
  int to_first, to_step, to;  // all positions of `to`
  int to_begin, to_end;       // present positions of `to`
  int w_first, w_step, kernel;
};

// The gradient of a position of x sums over those taps whose distance to it is a multiple of the stride, which are the
// same for all positions that are a stride apart: a phase.
__device__ inline RowsAxis rows_axis(const ConvolutionAxis& a, bool gradient, int phase) {
  if (!gradient)
    return {.rows = a.out_end - a.out_begin,
            .first = a.out_begin * a.stride - a.low,
            .step = a.stride,
            .tap_step = a.dilation,
            .taps = a.kernel,
            .begin = a.begin,
            .end = a.end,
            .from = a.in,
            .to_first = a.out_begin,
            .to_step = 1,
            .to = a.out,
            .to_begin = 0,
            .to_end = a.out,
            .w_first = 0,
            .w_step = 1,
            .kernel = a.kernel};
  int taps = 0, first = 0, every = 1;
  if (a.stride == 1) {
    taps = a.kernel;
  } else {
    for (int q = 0; q < a.kernel; ++q) {
      if ((phase + a.low - q * a.dilation) % a.stride != 0) continue;
      if (taps == 0) first = q;
      if (taps == 1) every = q - first;
      ++taps;
    }
  }
  return {.rows = phase < a.in ? (a.in - phase + a.stride - 1) / a.stride : 0,
          .first = taps == 0 ? 0 : (phase + a.low - first * a.dilation) / a.stride,
          .step = 1,
          .tap_step = -(every * a.dilation / a.stride),
          .taps = taps,
          .begin = 0,
          .end = a.out,
          .from = a.out,
          .to_first = phase,
          .to_step = a.stride,
          .to = a.in,
          .to_begin = a.begin,
          .to_end = a.end,
          .w_first = first,
          .w_step = every,
          .kernel = a.kernel};
}

// A row of a block: its offsets in `from` and `to`, in elements, and the position of its first tap. to: -1 if there is
// no such row.
struct GatheredRow {
  int64_t from, to;
  int at[kConvolutionAxes];
};

// An element of a row: the offsets of its tap, the row of w and the channel.
struct Tap {
  int at[kConvolutionAxes];
  int w, channel;
};

// What a block computes.
struct RowsPlace {
  RowsAxis axis[kConvolutionAxes];
  int64_t first_row = 0;
  int row_count = 0;  // per sample
  int terms = 0, depth = 0, first_column = 0, columns = 0;
  int64_t from_channel = 0, to_channel = 0, w_column = 0;  // the first of the group
  bool gradient = false;

  __device__ RowsPlace(const ConvolutionRows& c, bool grad, int high, int wide) : gradient(grad) {
    unsigned phase = blockIdx.y;
    for (int d = kConvolutionAxes; d-- > 0;) {
      const auto phases = static_cast<unsigned>(grad ? c.sizes.axis[d].stride : 1);
      axis[d] = rows_axis(c.sizes.axis[d], grad, static_cast<int>(phase % phases));
      phase /= phases;
    }
    row_count = axis[0].rows * axis[1].rows * axis[2].rows;
    depth = c.depth(grad);
    terms = axis[0].taps * axis[1].taps * axis[2].taps * depth;
    first_row = static_cast<int64_t>(blockIdx.x / c.across) * high;
    first_column = static_cast<int>(blockIdx.x % c.across) * wide;
    columns = c.columns(grad) - first_column;
    const auto group = static_cast<int64_t>(blockIdx.z);
    from_channel = group * depth, to_channel = group * c.columns(grad), w_column = group * c.sizes.filters;
  }

  // Row i of this block.
  __device__ GatheredRow row(const ConvolutionRows& c, int i) const {
    constexpr int kAbsent = -(1 << 30);
    GatheredRow r = {0, -1, {kAbsent, 0, 0}};
    if (row_count == 0) return r;
    const int64_t sample = first_row / row_count;
    const int place = static_cast<int>(first_row - sample * row_count) + i, more = place / row_count;
    if (sample + more >= c.sizes.samples) return r;
    int left = place - more * row_count, j[kConvolutionAxes];
    j[2] = left % axis[2].rows, left /= axis[2].rows;
    j[1] = left % axis[1].rows, j[0] = left / axis[1].rows;
    int64_t from = sample + more, to = sample + more;
    bool present = true;
    GPU_UNROLL
    for (int d = 0; d < kConvolutionAxes; ++d) {
      const int to_at = axis[d].to_first + j[d] * axis[d].to_step;
      present &= to_at >= axis[d].to_begin && to_at < axis[d].to_end;
      r.at[d] = axis[d].first + j[d] * axis[d].step;
      from *= axis[d].from;
      to = to * axis[d].to + to_at;
    }
    r.from = from * (gradient ? c.sizes.all_filters() : c.sizes.all_channels()) + from_channel;
    r.to = to * (gradient ? c.sizes.all_channels() : c.sizes.all_filters()) + to_channel;
    if (!present) r.at[0] = kAbsent;
    return r;
  }

  __device__ Tap tap(int term) const {
    int left = term / depth, t[kConvolutionAxes];
    Tap made;
    made.channel = term - left * depth;
    t[2] = left % axis[2].taps, left /= axis[2].taps;
    t[1] = left % axis[1].taps, t[0] = left / axis[1].taps;
    made.w = 0;
    GPU_UNROLL
    for (int d = 0; d < kConvolutionAxes; ++d) {
      made.at[d] = t[d] * axis[d].tap_step;
      made.w = made.w * axis[d].kernel + axis[d].w_first + t[d] * axis[d].w_step;
    }
    return made;
  }

  // The offset of an element of a row in `from`; -1 if its position is absent.
  __device__ int64_t offset(const ConvolutionRows& c, const GatheredRow& r, const Tap& tap) const {
    int64_t position = 0;
    bool present = true;
    GPU_UNROLL
    for (int d = 0; d < kConvolutionAxes; ++d) {
      const int at = r.at[d] + tap.at[d];
      present &= at >= axis[d].begin && at < axis[d].end;
      position = position * axis[d].from + at;
    }
    return present ? r.from + position * (gradient ? c.sizes.all_filters() : c.sizes.all_channels()) + tap.channel : -1;
  }
  // The offset in w of the weight from an element of a row to a column of this block.
  __device__ int64_t weight(const ConvolutionRows& c, const Tap& tap, int column) const {
    const int channel = gradient ? first_column + column : tap.channel,
              filter = gradient ? tap.channel : first_column + column;
    return (static_cast<int64_t>(tap.w) * c.sizes.channels + channel) * c.sizes.all_filters() + w_column + filter;
  }
};

// Copies 8 adjacent elements of rows to shared memory; kCopies rows kApart apart.
template <typename T, int kCopies, int kApart, typename Offset>
__device__ __forceinline__ void gather_runs(T* to, const T* from, const RowsPlace& p, int term, bool wide,
                                            const Offset& offset) {
  if (wide) {  // a run is within a tap
    const Tap tap = p.tap(term);
    GPU_UNROLL
    for (int i = 0; i < kCopies; ++i) {
      const int64_t at = term < p.terms ? offset(i, tap) : -1;
      if (at >= 0) {
        copy_async_16(to + i * kApart, from + at);
      } else {
        *reinterpret_cast<Vec<T, 8>*>(to + i * kApart) = {};
      }
    }
    return;
  }
  GPU_ROLL
  for (int j = 0; j < 8; ++j) {
    const Tap tap = p.tap(term + j);
    GPU_UNROLL
    for (int i = 0; i < kCopies; ++i) {
      const int64_t at = term + j < p.terms ? offset(i, tap) : -1;
      to[i * kApart + j] = at < 0 ? T{} : from[at];
    }
  }
}

// Grid: blocks of rows and columns, phases, groups.
template <typename T, bool kGradient, int kM, int kN, int kStages>
__global__ void __launch_bounds__(Shape16<kM, kN>::kThreads) convolve_rows_16(ConvolutionRows c) {
  using S = Shape16<kM, kN>;
  constexpr int kRuns = kDepth / 8, kTogether = S::kThreads / kRuns;  // rows that the block copies together
  static_assert(kM % kTogether == 0 && kN % kTogether == 0);
  GPU_DYNAMIC_SHARED(T, parts);
  __shared__ GatheredRow rows[kM];
  const RowsPlace p(c, kGradient, kM, kN);
  if (p.first_row >= c.sizes.samples * p.row_count) return;
  for (int i = static_cast<int>(threadIdx.x); i < kM; i += S::kThreads) rows[i] = p.row(c, i);
  __syncthreads();
  const T *const from = static_cast<const T*>(c.from.data), *const w = static_cast<const T*>(c.w.data);
  const int run = static_cast<int>(threadIdx.x) % kRuns * 8, first = static_cast<int>(threadIdx.x) / kRuns;
  const auto copy = [&](int64_t step, T* to_a, T* to_b) {
    constexpr int kRow = kDepth + 8;
    const int term = static_cast<int>(step) * kDepth + run;
    gather_runs<T, kM / kTogether, kTogether * kRow>(
        to_a + first * kRow + run, from, p, term, c.wide_from,
        [&](int i, const Tap& tap) { return p.offset(c, rows[first + i * kTogether], tap); });
    if constexpr (kGradient) {
      gather_runs<T, kN / kTogether, kTogether * kRow>(to_b + first * kRow + run, w, p, term, c.wide_w,
                                                       [&](int i, const Tap& tap) {
                                                         const int column = first + i * kTogether;
                                                         return column < p.columns ? p.weight(c, tap, column) : -1;
                                                       });
    } else {
      const int64_t row = step * kDepth;
      copy_part<kDepth, kN, S::kThreads>(to_b, w + row * c.sizes.all_filters() + p.w_column + p.first_column,
                                         c.sizes.all_filters(), p.terms - row, p.columns, c.wide_w);
    }
  };
  typename S::Sums sums = {};
  multiply_tiles<T, false, !kGradient, kM, kN, kStages>(parts, (p.terms + kDepth - 1) / kDepth, copy, sums);

  const int lane = static_cast<int>(threadIdx.x) % 32;
  GPU_UNROLL
  for (int i = 0; i < S::kWarpM / 16; ++i) GPU_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int64_t to = rows[S::first_row() + i * 16 + half * 8 + lane / 4].to;
    if (to < 0) continue;
    GPU_UNROLL
    for (int j = 0; j < S::kWarpN / 8; ++j) {
      const int column = S::first_column() + j * 8 + lane % 4 * 2;
      if (column >= p.columns) continue;
      const int64_t at = to + p.first_column + column;
      const float x = sums[i][j][2 * half], y = sums[i][j][2 * half + 1];
      const bool both = column + 1 < p.columns;
      if (c.to.dtype == DType::f32) {
        put_pair(static_cast<float*>(c.to.data) + at, x, y, both, c.wide_to, false);
      } else {
        put_pair(static_cast<T*>(c.to.data) + at, x, y, both, c.wide_to, false);
      }
    }
  }
}

// Products by FMAs: a thread computes 8 rows and 4 columns of a block of 64 x 64.
constexpr int kConvolutionBlock = 64, kConvolutionDepth = 16, kConvolutionThreads = 128;

struct FmaTiles {
  float a[2][kConvolutionDepth][kConvolutionBlock + 4], b[2][kConvolutionDepth][kConvolutionBlock + 4];

  __device__ static int row() { return static_cast<int>(threadIdx.x) / 16 * 8; }
  __device__ static int column() { return static_cast<int>(threadIdx.x) % 16 * 4; }
  // sums += a b of a stage.
  __device__ __forceinline__ void add(int stage, float (&sums)[8][4]) const {
    GPU_UNROLL
    for (int k = 0; k < kConvolutionDepth; ++k) {
      const auto x = *reinterpret_cast<const Vec<float, 4>*>(&a[stage][k][row()]);
      const auto z = *reinterpret_cast<const Vec<float, 4>*>(&a[stage][k][row() + 4]);
      const auto y = *reinterpret_cast<const Vec<float, 4>*>(&b[stage][k][column()]);
      GPU_UNROLL
      for (int i = 0; i < 8; ++i) GPU_UNROLL
      for (int j = 0; j < 4; ++j) sums[i][j] += (i < 4 ? x[i % 4] : z[i % 4]) * y[j];
    }
  }
};
// Elements of a tile that a thread copies, and the distance of those with the same column of a tile [64 16] or [16 64].
constexpr int kConvolutionEach = kConvolutionBlock * kConvolutionDepth / kConvolutionThreads;
constexpr int kApartAlong = kConvolutionThreads / kConvolutionDepth,
              kApartAcross = kConvolutionThreads / kConvolutionBlock;

__device__ __forceinline__ float element_or_zero(const AnyData& x, int64_t at) {
  return at < 0 ? 0 : element_of(x.data, x.dtype, at);
}

// For fp32, and operands of several dtypes.
template <bool kGradient>
__global__ void __launch_bounds__(kConvolutionThreads) convolve_rows_32(ConvolutionRows c) {
  alignas(16) __shared__ FmaTiles tiles;
  __shared__ GatheredRow rows[kConvolutionBlock];
  const RowsPlace p(c, kGradient, kConvolutionBlock, kConvolutionBlock);
  if (p.first_row >= c.sizes.samples * p.row_count) return;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kConvolutionBlock) rows[thread] = p.row(c, thread);
  __syncthreads();
  const int along = thread % kConvolutionDepth, row = thread / kConvolutionDepth;        // of a tile [64 16]
  const int across = thread % kConvolutionBlock, k_across = thread / kConvolutionBlock;  // of a tile [16 64]
  float sums[8][4] = {}, next_a[kConvolutionEach], next_b[kConvolutionEach];
  const auto load = [&](int first) {
    const Tap tap = p.tap(first + along);
    const bool present = first + along < p.terms;
    GPU_UNROLL
    for (int i = 0; i < kConvolutionEach; ++i) {
      const int at = row + i * kApartAlong;
      next_a[i] = element_or_zero(c.from, present ? p.offset(c, rows[at], tap) : -1);
      if constexpr (kGradient) {
        next_b[i] = element_or_zero(c.w, present && at < p.columns ? p.weight(c, tap, at) : -1);
      } else {
        const int64_t k = first + k_across + i * kApartAcross;
        next_b[i] = element_or_zero(c.w, k < p.terms && across < p.columns
                                             ? k * c.sizes.all_filters() + p.w_column + p.first_column + across
                                             : -1);
      }
    }
  };
  if (p.terms > 0) load(0);
  int stage = 0;
  for (int first = 0; first < p.terms; first += kConvolutionDepth, stage ^= 1) {
    GPU_UNROLL
    for (int i = 0; i < kConvolutionEach; ++i) {
      tiles.a[stage][along][row + i * kApartAlong] = next_a[i];
      if constexpr (kGradient) {
        tiles.b[stage][along][row + i * kApartAlong] = next_b[i];
      } else {
        tiles.b[stage][k_across + i * kApartAcross][across] = next_b[i];
      }
    }
    __syncthreads();
    if (first + kConvolutionDepth < p.terms) load(first + kConvolutionDepth);
    tiles.add(stage, sums);
  }
  GPU_UNROLL
  for (int i = 0; i < 8; ++i) {
    const int64_t to = rows[FmaTiles::row() + i].to;
    if (to < 0) continue;
    GPU_UNROLL
    for (int j = 0; j < 4; ++j) {
      const float sum[1] = {sums[i][j]};
      const int column = FmaTiles::column() + j;
      if (column < p.columns) c.to.put(to + p.first_column + column, sum, false);
    }
  }
}

}  // namespace
}  // namespace kintsugi::KINTSUGI_GPU
