// Conversion of elements from one floating data type to another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::checkpoint {

// True where elements of `from` may be read as `to`: equal types, or both floating.
bool converts(tensor::DType from, tensor::DType to);

// Converts `count` elements, each rounded once, to nearest, ties to even. Neither buffer need be aligned; they must
// not overlap. InternalError if the types do not convert.
void convert(tensor::DType from, const std::byte* source, tensor::DType to, std::byte* target, int64_t count);

}  // namespace kintsugi::checkpoint
