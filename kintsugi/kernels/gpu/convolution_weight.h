// Gradients of convolution weights as implicit matrix products: dw as a matrix [kernel*channels filters] is the sum
// over positions of y of a gathered column of x times a row of dy. Slices of positions are summed separately, then
// added in order.
#pragma once

#include "kintsugi/kernels/gpu/convolution_rows.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

struct ConvolutionWeight {
  ConvolutionSizes sizes;
  AnyData x, dy, dw;
  float* parts = nullptr;  // [slice kernel*channels filters]; null: one slice, which is stored
  bool add = false;        // to dw
  bool wide_x = false, wide_dy = false, wide_dw = false;  // runs of 8, 8 and 2 elements are aligned to their size
  ConvolutionSlices slices;
  Divisor outputs, out_1, out_2;  // positions of y per sample, and of its last two dims
  unsigned across = 1;            // blocks per row of blocks
};

// The input position of an output position and a row of dw, from the sums of both.
struct WeightRow {
  int at[kConvolutionAxes];
  int64_t channel;
};

struct WeightPlace {
  int64_t first = 0, count = 0;  // positions of y
  int first_row = 0, rows = 0, first_column = 0, columns = 0;
  int64_t x_channel = 0, filter = 0;  // the first of the group

  __device__ WeightPlace(const ConvolutionWeight& c, int high, int wide) {
    const ConvolutionSizes& s = c.sizes;
    const int64_t all = s.samples * s.outputs();
    first = blockIdx.y * c.slices.positions;
    count = all - first < c.slices.positions ? all - first : c.slices.positions;
    first_row = static_cast<int>(blockIdx.x / c.across) * high;
    first_column = static_cast<int>(blockIdx.x % c.across) * wide;
    rows = s.weight_rows() - first_row, columns = s.filters - first_column;
    x_channel = static_cast<int64_t>(blockIdx.z) * s.channels, filter = static_cast<int64_t>(blockIdx.z) * s.filters;
  }
};

__device__ inline WeightRow weight_row(const ConvolutionSizes& s, int row, int64_t first_channel) {
  int left = row / s.channels;
  WeightRow r;
  r.channel = first_channel + row - left * s.channels;
  GPU_UNROLL
  for (int d = kConvolutionAxes; d-- > 0;) {
    const ConvolutionAxis& a = s.axis[d];
    const int above = left / a.kernel;
    r.at[d] = (left - above * a.kernel) * a.dilation - a.low;
    left = above;
  }
  return r;
}

// The sample of a position of y, and the input positions of its first tap without padding.
struct OutputPlace {
  int64_t sample;
  int at[kConvolutionAxes];
};
__device__ inline OutputPlace output_place(const ConvolutionSizes& s, const Divisor& outputs, const Divisor& out_1,
                                           const Divisor& out_2, int64_t position) {
  OutputPlace p;
  p.sample = outputs.quotient(position);
  int64_t left = position - p.sample * outputs.by;
  const int64_t above = out_2.quotient(left), top = out_1.quotient(above);
  p.at[2] = static_cast<int>(left - above * out_2.by) * s.axis[2].stride;
  p.at[1] = static_cast<int>(above - top * out_1.by) * s.axis[1].stride;
  p.at[0] = static_cast<int>(top) * s.axis[0].stride;
  return p;
}

// The offset in x; -1 if the position is absent.
__device__ inline int64_t input_offset(const ConvolutionSizes& s, const OutputPlace& o, const WeightRow& r) {
  int64_t position = o.sample;
  bool present = true;
  GPU_UNROLL
  for (int d = 0; d < kConvolutionAxes; ++d) {
    const int at = o.at[d] + r.at[d];
    present &= at >= s.axis[d].begin && at < s.axis[d].end;
    position = position * s.axis[d].in + at;
  }
  return present ? position * s.all_channels() + r.channel : -1;
}

// Stores an element of the matrix, and the next if `both`.
template <typename T>
__device__ __forceinline__ void put_weight(const ConvolutionWeight& c, int64_t row, int64_t column, float x, float y,
                                           bool both) {
  const int64_t at = row * c.sizes.all_filters() + column;
  if (c.parts != nullptr) {
    float* const part = c.parts + blockIdx.y * static_cast<int64_t>(c.sizes.weight_rows()) * c.sizes.all_filters();
    put_pair(part + at, x, y, both, c.wide_dw, false);
  } else if (c.dw.dtype == DType::f32) {
    put_pair(static_cast<float*>(c.dw.data) + at, x, y, both, c.wide_dw, c.add);
  } else {
    put_pair(static_cast<T*>(c.dw.data) + at, x, y, both, c.wide_dw, c.add);
  }
}

// Grid: blocks of dw, slices, groups.
template <typename T, int kM, int kN, int kStages>
__global__ void __launch_bounds__(Shape16<kM, kN>::kThreads) convolve_weight_16(ConvolutionWeight c) {
  using S = Shape16<kM, kN>;
  constexpr int kRuns = kM / 8, kTogether = S::kThreads / kRuns;  // positions that the block copies together
  static_assert(kDepth % kTogether == 0);
  GPU_DYNAMIC_SHARED(T, parts);
  const WeightPlace p(c, kM, kN);
  const ConvolutionSizes& s = c.sizes;
  const T *const x = static_cast<const T*>(c.x.data), *const dy = static_cast<const T*>(c.dy.data);
  const int run = static_cast<int>(threadIdx.x) % kRuns * 8, from = static_cast<int>(threadIdx.x) / kRuns;
  const WeightRow first = weight_row(s, p.first_row + run, p.x_channel);
  const auto copy = [&](int64_t step, T* to_a, T* to_b) {
    GPU_UNROLL
    for (int i = 0; i < kDepth; i += kTogether) {
      T* const to = to_a + (from + i) * (kM + 8) + run;
      const int64_t k = step * kDepth + from + i;
      const OutputPlace o = output_place(s, c.outputs, c.out_1, c.out_2, p.first + k);
      if (c.wide_x) {  // a run is within a tap
        const int64_t at = k < p.count && run < p.rows ? input_offset(s, o, first) : -1;
        if (at >= 0) {
          copy_async_16(to, x + at);
        } else {
          *reinterpret_cast<Vec<T, 8>*>(to) = {};
        }
        continue;
      }
      GPU_ROLL
      for (int j = 0; j < 8; ++j) {
        const bool present = k < p.count && run + j < p.rows;
        const int64_t at =
            present ? input_offset(s, o, weight_row(s, p.first_row + run + j, p.x_channel)) : int64_t{-1};
        to[j] = at < 0 ? T{} : x[at];
      }
    }
    const int64_t done = step * kDepth;
    copy_part<kDepth, kN, S::kThreads>(to_b, dy + (p.first + done) * s.all_filters() + p.filter + p.first_column,
                                       s.all_filters(), p.count - done, p.columns, c.wide_dy);
  };
  typename S::Sums sums = {};
  multiply_tiles<T, true, true, kM, kN, kStages>(parts, (p.count + kDepth - 1) / kDepth, copy, sums);

  const int lane = static_cast<int>(threadIdx.x) % 32;
  GPU_UNROLL
  for (int i = 0; i < S::kWarpM / 16; ++i) GPU_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int row = S::first_row() + i * 16 + half * 8 + lane / 4;
    if (row >= p.rows) continue;
    GPU_UNROLL
    for (int j = 0; j < S::kWarpN / 8; ++j) {
      const int column = S::first_column() + j * 8 + lane % 4 * 2;
      if (column < p.columns)
        put_weight<T>(c, p.first_row + row, p.filter + p.first_column + column, sums[i][j][2 * half],
                      sums[i][j][2 * half + 1], column + 1 < p.columns);
    }
  }
}

// For fp32, and operands of several dtypes.
__global__ void __launch_bounds__(kConvolutionThreads) convolve_weight_32(ConvolutionWeight c) {
  alignas(16) __shared__ FmaTiles tiles;
  const WeightPlace p(c, kConvolutionBlock, kConvolutionBlock);
  const ConvolutionSizes& s = c.sizes;
  const int across = static_cast<int>(threadIdx.x) % kConvolutionBlock,
            position = static_cast<int>(threadIdx.x) / kConvolutionBlock;
  const WeightRow row = weight_row(s, p.first_row + across, p.x_channel);
  const int64_t column = p.filter + p.first_column + across;
  float sums[8][4] = {}, next_a[kConvolutionEach], next_b[kConvolutionEach];
  const auto load = [&](int64_t first) {
    GPU_UNROLL
    for (int i = 0; i < kConvolutionEach; ++i) {
      const int64_t k = first + position + i * kApartAcross, at = p.first + k;
      const OutputPlace o = output_place(s, c.outputs, c.out_1, c.out_2, at);
      next_a[i] = element_or_zero(c.x, k < p.count && across < p.rows ? input_offset(s, o, row) : -1);
      next_b[i] = element_or_zero(c.dy, k < p.count && across < p.columns ? at * s.all_filters() + column : -1);
    }
  };
  if (p.count > 0) load(0);
  int stage = 0;
  for (int64_t first = 0; first < p.count; first += kConvolutionDepth, stage ^= 1) {
    GPU_UNROLL
    for (int i = 0; i < kConvolutionEach; ++i) {
      tiles.a[stage][position + i * kApartAcross][across] = next_a[i];
      tiles.b[stage][position + i * kApartAcross][across] = next_b[i];
    }
    __syncthreads();
    if (first + kConvolutionDepth < p.count) load(first + kConvolutionDepth);
    tiles.add(stage, sums);
  }
  GPU_UNROLL
  for (int i = 0; i < 8; ++i) {
    const int at = FmaTiles::row() + i;
    if (at >= p.rows) continue;
    GPU_UNROLL
    for (int j = 0; j < 4; ++j) {
      const int to = FmaTiles::column() + j;
      if (to >= p.columns) continue;
      const int64_t element = static_cast<int64_t>(p.first_row + at) * s.all_filters() + p.filter + p.first_column + to;
      const float sum[1] = {sums[i][j]};
      c.parts == nullptr ? c.dw.put(element, sum, c.add)
                         : put(c.parts + blockIdx.y * static_cast<int64_t>(s.weight_rows()) * s.all_filters() + element,
                               sum[0], false);
    }
  }
}

// dw = the slices, added in order.
__global__ void __launch_bounds__(kPieceThreads) add_slices(ConvolutionWeight c, int64_t elements) {
  for (int64_t i = first_piece(); i < elements; i += all_threads()) {
    float sum[1] = {0};
    for (int64_t slice = 0; slice < c.slices.count; ++slice) sum[0] += c.parts[slice * elements + i];
    c.dw.put(i, sum, c.add);
  }
}

}  // namespace
}  // namespace kintsugi::KINTSUGI_GPU
