// The attributes of the operation "pixels": y = x * scale + shift, per channel.
#pragma once

#include <cstdint>

#include "kintsugi/tensor/attributes.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::kernels {

struct PixelScale {
  double scale = 1, shift = 0;
};

// (x / most - mean) / deviation, with entry `channel` of the attributes "mean" and "deviation", each a list or one
// number for all channels; most is 255 for bytes, else 1.
PixelScale pixel_scale(const tensor::Attributes& attributes, tensor::DType x, int64_t channel);

}  // namespace kintsugi::kernels
