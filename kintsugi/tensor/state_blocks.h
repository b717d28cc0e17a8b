// Optimizer states in 8-bit codes have a scale for each block of elements, in flat order.
#pragma once

#include <cstdint>
#include <string_view>

namespace kintsugi::tensor {

constexpr int64_t kStateBlock = 256;                        // elements
constexpr std::string_view kStateBlockDim = "state_block";  // the only dim of a state with an element for each block

}  // namespace kintsugi::tensor
