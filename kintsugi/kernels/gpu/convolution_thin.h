// Convolutions with few channels or filters per group, such as depthwise ones: threads compute elements, N adjacent
// ones if each group has one channel and one filter.
#pragma once

#include "kintsugi/kernels/gpu/convolution_weight.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

template <int N>
__device__ __forceinline__ void add_products(float (&sums)[N], const AnyData& a, int64_t at, const AnyData& b,
                                             int64_t from) {
  float x[N], y[N];
  a.load(x, at), b.load(y, from);
  GPU_UNROLL
  for (int i = 0; i < N; ++i) sums[i] += x[i] * y[i];
}

// Positions of `to` that are computed, along a dim.
__host__ __device__ __forceinline__ int thin_count(const ConvolutionAxis& a, bool gradient) {
  return gradient ? a.in : a.out_end - a.out_begin;
}

// Per multiprocessor: without it, nvcc spills registers for more.
constexpr int kThinBlocks = 3;

// Grid: elements of a sample of `to`, samples.
template <bool kGradient, int N>
__global__ void __launch_bounds__(kPieceThreads, kThinBlocks) convolve_thin(ConvolutionRows c, unsigned runs) {
  const ConvolutionSizes& s = c.sizes;
  const auto size = [&](int d, bool of_to) { return kGradient == of_to ? s.axis[d].in : s.axis[d].out; };
  const unsigned first = blockIdx.x * blockDim.x + threadIdx.x,
                 width = (kGradient ? s.all_channels() : s.all_filters()) / N;
  const int64_t sample = blockIdx.y;
  for (unsigned run = first; run < runs; run += gridDim.x * blockDim.x) {
    int left = static_cast<int>(run / width), to[kConvolutionAxes];
    const int column = static_cast<int>(run - left * width) * N;
    bool present = true;
    GPU_UNROLL
    for (int d = kConvolutionAxes; d-- > 0;) {
      const int count = thin_count(s.axis[d], kGradient), above = left / count;
      to[d] = left - above * count + (kGradient ? 0 : s.axis[d].out_begin);
      left = above;
      if (kGradient) present &= to[d] >= s.axis[d].begin && to[d] < s.axis[d].end;
    }
    float sums[N] = {};
    // The position of `from` along a dim for a tap, or -1.
    const auto from = [&](int d, int tap) {
      const ConvolutionAxis& a = s.axis[d];
      if constexpr (kGradient) {
        const int distance = to[d] + a.low - tap * a.dilation;
        return distance >= 0 && distance % a.stride == 0 && distance / a.stride < a.out ? distance / a.stride : -1;
      } else {
        const int at = to[d] * a.stride - a.low + tap * a.dilation;
        return at >= a.begin && at < a.end ? at : -1;
      }
    };
    const int depth = c.depth(kGradient), group = column / c.columns(kGradient), own = column % c.columns(kGradient);
    for (int i = 0; present && i < s.axis[0].kernel; ++i) {
      const int at_0 = from(0, i);
      if (at_0 < 0) continue;
      for (int j = 0; j < s.axis[1].kernel; ++j) {
        const int at_1 = from(1, j);
        if (at_1 < 0) continue;
        for (int k = 0; k < s.axis[2].kernel; ++k) {
          const int at_2 = from(2, k);
          if (at_2 < 0) continue;
          const int64_t position = ((sample * size(0, false) + at_0) * size(1, false) + at_1) * size(2, false) + at_2;
          const int64_t tap = (i * s.axis[1].kernel + j) * s.axis[2].kernel + k;
          for (int m = 0; m < depth; ++m) {
            const int64_t channel = kGradient ? own : m, filter = group * s.filters + (kGradient ? m : own);
            add_products<N>(sums, c.from, position * depth * s.groups + group * depth + m, c.w,
                            (tap * s.channels + channel) * s.all_filters() + filter);
          }
        }
      }
    }
    const int64_t position = ((sample * size(0, true) + to[0]) * size(1, true) + to[1]) * size(2, true) + to[2];
    c.to.put(position * (kGradient ? s.all_channels() : s.all_filters()) + column, sums, false);
  }
}

struct ThinWeight {
  ConvolutionWeight weight;
  int64_t elements = 0;
  Divisor filters;  // of all groups
};

// Grid: elements of dw, slices.
template <int N>
__global__ void __launch_bounds__(kPieceThreads) convolve_thin_weight(ThinWeight t) {
  const ConvolutionWeight& c = t.weight;
  const ConvolutionSizes& s = c.sizes;
  const int64_t all = s.samples * s.outputs(), first = blockIdx.y * c.slices.positions;
  const int64_t last = all - first < c.slices.positions ? all : first + c.slices.positions;
  for (int64_t i = first_piece() * N; i < t.elements; i += all_threads() * N) {
    const int64_t row = t.filters.quotient(i), filter = i - row * t.filters.by;
    const WeightRow r = weight_row(s, static_cast<int>(row), filter / s.filters * s.channels);
    float sums[N] = {};
    for (int64_t position = first; position < last; ++position) {
      const int64_t at = input_offset(s, output_place(s, c.outputs, c.out_1, c.out_2, position), r);
      if (at >= 0) add_products<N>(sums, c.x, at, c.dy, position * s.all_filters() + filter);
    }
    if (c.parts != nullptr) {
      put_run(c.parts + blockIdx.y * t.elements + i, sums, false);
    } else {
      c.dw.put(i, sums, c.add);
    }
  }
}

}  // namespace
}  // namespace kintsugi::KINTSUGI_GPU
