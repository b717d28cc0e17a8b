// Converts elements from one floating-point type to another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::checkpoint {

// Whether elements of `from` can be read as `to`: equal types, or both floating-point.
bool converts(tensor::DType from, tensor::DType to);

// Converts `count` elements, each with one rounding to nearest even. The buffers need no alignment; they must not
// overlap. Throws InternalError if the types do not convert.
void convert(tensor::DType from, const std::byte* source, tensor::DType to, std::byte* target, int64_t count);

}  // namespace kintsugi::checkpoint
