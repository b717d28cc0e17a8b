// Optimizer states in 8-bit codes have a scale for each block of elements, in flat order.
#pragma once

#include <cstdint>
#include <string_view>

#include "kintsugi/tensor/shape.h"

namespace kintsugi::tensor {

constexpr int64_t kStateBlock = 256;                        // elements
constexpr std::string_view kStateBlockDim = "state_block";  // where the dims of a weight have no whole blocks

// The dims of the scales of a weight: its leading dims, and the last of them counts the blocks of what it and the dims
// after it hold, so that a split of these dims that cuts no block splits the scales alike. [embed 512, ffn 1024] has
// scales [embed 512, ffn 4]. A weight whose elements do not fill blocks has scales [state_block].
Shape scales_of(const Shape& weight);

}  // namespace kintsugi::tensor
