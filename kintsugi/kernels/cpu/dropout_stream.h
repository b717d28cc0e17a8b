// The random words of dropout, and the resulting factors.
#pragma once

#include <array>
#include <cstdint>

namespace kintsugi::kernels::cpu {

struct DropoutStream {
  std::array<uint32_t, 2> key;
  uint64_t step;
  uint32_t threshold;
  float factor;  // of kept elements
};

}  // namespace kintsugi::kernels::cpu
