// What limits the time of an operation, for estimates of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kintsugi::tensor {

// product: a matmul or convolution. attention: attention as one operation. other: memory bandwidth.
enum class CostClass : uint8_t { product, attention, other };
inline constexpr std::array<std::string_view, 3> kCostClasses = {"products", "attention", "other kernels"};
constexpr std::string_view name_of(CostClass c) {
  return kCostClasses[static_cast<size_t>(c)];
}

}  // namespace kintsugi::tensor
