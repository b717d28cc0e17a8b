// Windows: operations that read several input positions per output position (convolution, pooling).
//
// The attribute "window" names the windowed dims ("height width"). Attributes of such a dim D: "kernel_D"; "stride_D"
// and "dilation_D", default 1; the padding "low_D" and "high_D", default 0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/tensor/attributes.h"

namespace kintsugi::tensor {

// Output position o reads input positions o * stride - low + k * dilation, k = 0 .. kernel - 1. Positions outside the
// input are absent: zero, or not counted.
struct Window {
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t low = 0, high = 0;  // padding before the first and after the last position

  int64_t extent() const { return (kernel - 1) * dilation + 1; }  // from the first to the last position read, inclusive
  // Number of output positions for that many inputs; 0 if the window does not fit.
  int64_t outputs(int64_t inputs) const {
    const int64_t room = inputs + low + high - extent();
    return room < 0 ? 0 : room / stride + 1;
  }
  // Length of the input range that this many consecutive outputs read.
  int64_t reach(int64_t outputs) const { return (outputs - 1) * stride + extent(); }

  bool operator==(const Window&) const = default;
};

struct DimWindow {
  std::string dim;
  Window window;

  bool operator==(const DimWindow&) const = default;
};

// The windows that the attributes define, possibly none. Throws InternalError for a kernel, stride or dilation below 1.
std::vector<DimWindow> windows_of(const Attributes& attributes);
void set_windows(Attributes& attributes, const std::vector<DimWindow>& windows);

// The name of a kernel's own dim: "kernel_height" for "height".
std::string kernel_dim(std::string_view dim);

}  // namespace kintsugi::tensor
