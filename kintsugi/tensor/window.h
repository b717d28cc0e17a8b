// Windows: operations that read several input positions per output position (convolution, pooling).
//
// The attribute "window" names the windowed dims ("height width"). Attributes of such a dim D: "kernel_D"; "stride_D"
// and "dilation_D", default 1; the padding "low_D" and "high_D", default 0.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
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

// What an instruction computes of a window operation whose output two instructions share: the output positions
// [begin, end) of the local block along `dim`, or all others. Attributes "part" ("inner" or "outer"), "part_dim",
// "part_begin", "part_end".
struct OutputPart {
  std::string dim;
  int64_t begin = 0, end = 0;
  bool outer = false;

  // The ranges of positions [begin, end) that it computes of `length`, ascending and possibly empty.
  std::array<std::array<int64_t, 2>, 2> ranges(int64_t length) const;
  int64_t positions(int64_t length) const { return outer ? length - (end - begin) : end - begin; }

  bool operator==(const OutputPart&) const = default;
};

// nullopt: the whole output.
std::optional<OutputPart> output_part(const Attributes& attributes);
void set_output_part(Attributes& attributes, const OutputPart& part);

// The name of a kernel's own dim: "kernel_height" for "height".
std::string kernel_dim(std::string_view dim);

}  // namespace kintsugi::tensor
