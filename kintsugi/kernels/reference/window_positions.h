// The inputs that the windows of an operation cover.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels::reference {

// x: [samples spatial... channels], and y computed by windows over it.
struct WindowPositions {
  int64_t samples = 0, inputs = 0, outputs = 0, windows = 0;  // spatial positions of x, of y, and of a window
  int64_t x_channels = 0, y_channels = 0;
  std::vector<int64_t> input;  // [outputs windows]: position in x, or -1 if outside

  // Offset of a position of a sample.
  int64_t x(int64_t sample, int64_t position) const { return (sample * inputs + position) * x_channels; }
  int64_t y(int64_t sample, int64_t position) const { return (sample * outputs + position) * y_channels; }
};

WindowPositions window_positions(const KernelCall& call, const tensor::Shape& x, const tensor::Shape& y);

}  // namespace kintsugi::kernels::reference
