// The interface to library convolutions: requests that the host alone can evaluate. Operands of one dtype, whole
// outputs; everything else uses our own kernels (convolution.cuh).
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

#include "kintsugi/device/device.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::kernels {

enum class ConvolutionPass : uint8_t { forward, input, weight };  // computes y; the gradient of x; the gradient of w

struct LibraryAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, low = 0, high = 0;
  auto operator<=>(const LibraryAxis&) const = default;
};

// x: [samples in... channels], w: [filters kernel... channels/groups], y: [samples out... filters], contiguous.
struct LibraryConvolution {
  ConvolutionPass pass = ConvolutionPass::forward;
  int axes = 2;  // 2 or 3
  int64_t samples = 0, channels = 0, filters = 0;
  int64_t groups = 1;
  LibraryAxis axis[3] = {};
  tensor::DType dtype = tensor::DType::bf16;            // of the operands: fp32, bf16, fp16
  tensor::DType dw_dtype = tensor::DType::f32;          // of the gradient of w: the same, or fp32
  bool tf32 = false;                                    // fp32 operands may be rounded to TF32
  const void *x = nullptr, *w = nullptr, *y = nullptr;  // one of them is written
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
};

// Workspace of a library for operands of these sizes in bytes.
inline int64_t library_convolution_bytes(int64_t x, int64_t w, int64_t y) {
  constexpr int64_t kMost = 32 << 20;
  return std::min(kMost, (2 * std::max(x, y) + 16 * w + 1024 + 255) / 256 * 256);
}

// Returns false, with nothing done, if the library is missing or does not support the request deterministically. In a
// stream that discards work, only checks for support.
using ConvolutionByLibrary = bool (*)(const LibraryConvolution& c, device::Stream& stream);
bool cudnn_convolution(const LibraryConvolution& c, device::Stream& stream);  // cuda/cudnn_convolution.cpp

}  // namespace kintsugi::kernels
