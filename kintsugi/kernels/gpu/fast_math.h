// fp32 functions in hardware, less accurate than the library's.
#pragma once

#include <cmath>

#include "kintsugi/device/gpu.h"

namespace kintsugi::KINTSUGI_GPU {

constexpr float kLog2E = 1.44269504f, kLn2 = 0.69314718f;

// 2^x, to about 2 ulp; flushes denormals to 0.
__device__ __forceinline__ float fast_exp2(float x) {
#if defined(__CUDACC__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return std::exp2(x);
#endif
}
// tanh(x), with an error below 2e-7.
__device__ __forceinline__ float fast_tanh(float x) {
  const float e = fast_exp2(2 * kLog2E * x) + 1;
#if defined(__CUDACC__)
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(e));
  return 1 - 2 * inverse;
#else
  return 1 - 2 / e;
#endif
}

}  // namespace kintsugi::KINTSUGI_GPU
