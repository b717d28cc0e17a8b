// Sizes of convolutions as kernel arguments.
// x: [samples in... groups*channels], w: [kernel... channels groups*filters], y: [samples out... groups*filters], with
// three spatial dims, the first of which have size 1 if there are fewer.
#pragma once

#include "kintsugi/kernels/gpu/strides.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::KINTSUGI_GPU {

constexpr int kConvolutionAxes = 3;

struct ConvolutionAxis {
  int in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, low = 0;
  int begin = 0, end = 1;          // present positions of x; the others are zero
  int out_begin = 0, out_end = 1;  // positions of y that are computed
};

struct ConvolutionSizes {
  int64_t samples = 0;
  int channels = 0, filters = 0, groups = 1;  // channels and filters of a group
  ConvolutionAxis axis[kConvolutionAxes] = {};

  __host__ __device__ int all_channels() const { return channels * groups; }
  __host__ __device__ int all_filters() const { return filters * groups; }
  __host__ __device__ int inputs() const { return axis[0].in * axis[1].in * axis[2].in; }  // per sample
  __host__ __device__ int outputs() const { return axis[0].out * axis[1].out * axis[2].out; }
  __host__ __device__ int windows() const { return axis[0].kernel * axis[1].kernel * axis[2].kernel; }
  __host__ __device__ int weight_rows() const { return windows() * channels; }  // of w as a matrix

  // Whether y is x, as a matrix of its positions, times w.
  bool is_product() const {
    for (const ConvolutionAxis& a : axis)
      if (a.kernel != 1 || a.stride != 1 || a.low != 0 || a.in != a.out || a.begin != 0 || a.end != a.in) return false;
    return groups == 1;
  }
  // Few channels and filters per group, for which tiles of matrix products would be mostly empty.
  bool is_thin() const { return groups > 1 && std::min(channels, filters) < 16; }
};

// Without `index`, all positions of x are present. Throws InternalError for sizes that kernels do not support.
inline ConvolutionSizes convolution_sizes(std::string_view kind, const tensor::Shape& x, const tensor::Shape& y,
                                          const tensor::Attributes& attributes, const KernelCall* index = nullptr) {
  const std::vector<tensor::DimWindow> windows = tensor::windows_of(attributes);
  base::require(windows.size() <= kConvolutionAxes && x.rank() == windows.size() + 2, "kernel",
                "{} of {} with {} windows on a device, which has up to {}", kind, to_string(x), windows.size(),
                kConvolutionAxes);
  constexpr int64_t kMost = int64_t{1} << 30;
  const auto narrow = [&](int64_t n) {
    base::require(n >= -kMost && n <= kMost, "kernel", "{} of {} to {} on a device", kind, to_string(x), to_string(y));
    return static_cast<int>(n);
  };
  ConvolutionSizes s;
  s.samples = x[0].size;
  s.groups = narrow(attributes.integer_or("groups", 1));
  s.channels = narrow(x[x.rank() - 1].size) / s.groups, s.filters = narrow(y[y.rank() - 1].size) / s.groups;
  int64_t inputs = 1, outputs = 1, rows = s.channels;
  for (size_t i = 0; i < windows.size(); ++i) {
    const auto& [dim, w] = windows[i];
    ConvolutionAxis& a = s.axis[kConvolutionAxes - windows.size() + i];
    a = {.in = narrow(x.size(dim)),
         .out = narrow(y.size(dim)),
         .kernel = narrow(w.kernel),
         .stride = narrow(w.stride),
         .dilation = narrow(w.dilation),
         .low = narrow(w.low)};
    narrow((w.outputs(a.in) + a.out) * w.stride + w.extent() + w.low);
    inputs *= a.in, outputs *= a.out, rows *= a.kernel;
    a.end = a.in, a.out_end = a.out;
    if (index == nullptr) continue;
    // Present positions are consecutive: absent ones are padding before and after the whole value.
    int64_t place = 0;
    a.end = 0;
    for (const tensor::Segment& segment : index->window_index(dim).segments()) {
      const int64_t last = std::min<int64_t>(place + segment.count, a.in);
      if (segment.global >= 0 && segment.count > 0 && place < a.in) {
        if (a.end == 0) a.begin = narrow(place);
        base::require(a.end == 0 || a.end == place, "kernel", "{} on a device: absent positions between others", kind);
        a.end = narrow(last);
      }
      place = last;
    }
  }
  narrow(inputs), narrow(outputs), narrow(rows);
  return s;
}

// Slices of the positions of y whose contributions to the gradient of w are computed separately and added in order:
// `count` slices of `positions` each. They depend on sizes only, so that sums do not depend on the device.
struct ConvolutionSlices {
  int64_t positions = 0, count = 1;
};
inline ConvolutionSlices convolution_slices(const ConvolutionSizes& s) {
  constexpr int64_t kTile = 64, kStep = 32, kFewest = 256, kMostBytes = 32 << 20, kMostSlices = 1024;
  const int64_t all = s.samples * s.outputs(), rows = s.weight_rows(), elements = rows * s.all_filters();
  const int64_t blocks = s.is_thin() ? quotient_up(elements, kPieceThreads)
                                     : quotient_up(rows, kTile) * quotient_up(s.filters, kTile) * s.groups;
  const int64_t wanted = quotient_up(4 * kProcessors, std::max<int64_t>(blocks, 1));
  const int64_t most = std::min(
      {quotient_up(all, kFewest), kMostBytes / std::max<int64_t>(elements * int64_t{4}, 1), wanted, kMostSlices});
  ConvolutionSlices slices;
  slices.positions = quotient_up(quotient_up(all, std::max<int64_t>(most, 1)), kStep) * kStep;
  slices.count = slices.positions == 0 ? 1 : quotient_up(all, slices.positions);
  return slices;
}

}  // namespace kintsugi::KINTSUGI_GPU
