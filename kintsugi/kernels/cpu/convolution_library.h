// fp32 convolutions through oneDNN, on the calling thread. x and y are [samples spatial... channels], weights
// [kernel... channels filters]; oneDNN reads weights in its own layout ("packed").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/tensor/attributes.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::kernels::cpu {

enum class ConvolutionPass : uint8_t {
  forward,
  input,
  weight
};  // computes y; the gradient of x; the gradient of the weights

constexpr size_t kMostWindows = 3;

struct ConvolutionSizes {
  ConvolutionPass pass = ConvolutionPass::forward;
  size_t windows = 0;
  int64_t samples = 0, channels = 0, filters = 0, groups = 1;
  std::array<int64_t, kMostWindows> in = {}, out = {}, kernel = {}, stride = {}, dilation = {}, low = {};

  int64_t x_elements() const;  // per sample
  int64_t y_elements() const;
  int64_t weights() const;
  bool operator==(const ConvolutionSizes&) const = default;
};

// The positions of x and y along the first windowed dim that a part of a convolution reads and writes.
struct ConvolutionRows {
  base::Range x, y;
};

// Of the output positions `y`.
ConvolutionRows rows_of(const ConvolutionSizes& sizes, base::Range y);

// The sizes of a convolution of one sample's rows.
ConvolutionSizes of_rows(ConvolutionSizes sizes, const ConvolutionRows& rows);

// For a call, by the whole shapes of its operands; 1 to kMostWindows windows.
ConvolutionSizes convolution_sizes(ConvolutionPass pass, const tensor::Shape& x, const tensor::Shape& y,
                                   const tensor::Attributes& attributes);

// What oneDNN prepared for these sizes. Created once, under lock_first_call(), and never destroyed.
class Convolution {
 public:
  virtual ~Convolution() = default;

  int64_t packed = 0;   // size of the packed weights in floats
  int64_t scratch = 0;  // bytes per thread and call

  virtual void pack(const float* weights, float* to) const = 0;
  virtual void unpack(const float* packed, float* to) const = 0;
  // Reads two of the three and writes the output of the pass.
  virtual void run(float* x, float* weights, float* y, std::byte* scratch) const = 0;
};

// Throws UserError if memory for oneDNN's generated code is lacking.
const Convolution& library_convolution(const ConvolutionSizes& sizes);

// With weights packed as for `other`: the same convolution of other samples and rows.
const Convolution& library_convolution(const ConvolutionSizes& sizes, const ConvolutionSizes& other);

}  // namespace kintsugi::kernels::cpu
