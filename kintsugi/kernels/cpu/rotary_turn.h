#pragma once

#include <cstdint>

namespace kintsugi::kernels::cpu {

// The heads of one position: [rows head_dim], whose first 2 * half dims are rotated. cosine and sine: [half]
struct RotaryTurn {
  int64_t rows, head_dim, half;
  bool interleaved;
  const float *cosine, *sine;
};

}  // namespace kintsugi::kernels::cpu
