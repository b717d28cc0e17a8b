// Convolutions of fp32 through oneDNN, on the calling thread alone. x and y are [samples spatial... channels], weights
// [kernel... channels filters]; oneDNN reads the weights in an order of its own ("packed").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kintsugi/tensor/attributes.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::kernels::cpu {

enum class ConvolutionPass : uint8_t { forward, input, weight };  // y; the gradient of x; the gradient of the weights

constexpr size_t kMostWindows = 3;

struct ConvolutionSizes {
  ConvolutionPass pass = ConvolutionPass::forward;
  size_t windows = 0;
  int64_t samples = 0, channels = 0, filters = 0, groups = 1;
  std::array<int64_t, kMostWindows> in = {}, out = {}, kernel = {}, stride = {}, dilation = {}, low = {};

  int64_t x_elements() const;  // of one sample
  int64_t y_elements() const;
  int64_t weights() const;
  bool operator==(const ConvolutionSizes&) const = default;
};

// Of a call, by the whole shapes of its operands, from 1 to kMostWindows windows.
ConvolutionSizes convolution_sizes(ConvolutionPass pass, const tensor::Shape& x, const tensor::Shape& y,
                                   const tensor::Attributes& attributes);

// What oneDNN prepared for these sizes. Each is made once, under lock_first_call, and lives as long as the process.
class Convolution {
 public:
  virtual ~Convolution() = default;

  int64_t packed = 0;   // floats of the packed weights
  int64_t scratch = 0;  // bytes that a thread needs in a call

  virtual void pack(const float* weights, float* to) const = 0;
  virtual void unpack(const float* packed, float* to) const = 0;
  // Reads two of the three and writes the one that the pass makes.
  virtual void run(float* x, float* weights, float* y, std::byte* scratch) const = 0;
};

// UserError if there is no memory for what oneDNN generates.
const Convolution& library_convolution(const ConvolutionSizes& sizes);

// The same for fewer samples, with weights packed as for `all`.
const Convolution& library_convolution(const ConvolutionSizes& all, int64_t samples);

}  // namespace kintsugi::kernels::cpu
