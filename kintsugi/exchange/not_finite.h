// NaN and infinity among the elements of weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::exchange {

// Counts them in elements of a floating type.
int64_t count_not_finite(std::span<const std::byte> elements, tensor::DType dtype);

}  // namespace kintsugi::exchange
