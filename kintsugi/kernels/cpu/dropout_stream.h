// The random words of a dropout, and what they decide.
#pragma once

#include <array>
#include <cstdint>

namespace kintsugi::kernels::cpu {

struct DropoutStream {
  std::array<uint32_t, 2> key;
  uint64_t step;
  uint32_t threshold;
  float factor;  // of what is kept
};

}  // namespace kintsugi::kernels::cpu
