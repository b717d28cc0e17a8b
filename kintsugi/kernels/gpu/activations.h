// Activation functions of one element: value and derivative (slope).
#pragma once

#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/gemm.h"

namespace kintsugi::KINTSUGI_GPU {

// Hendrycks, Gimpel 2016, "Gaussian error linear units", section 2.
struct GeluErf {
  __device__ static float value(float x) { return 0.5f * x * (1 + erff(x * 0.70710678f)); }
  __device__ static void both(float x, float& value, float& slope) {
    const float below = 0.5f * (1 + erff(x * 0.70710678f));
    value = x * below;
    slope = below + x * 0.39894228f * expf(-0.5f * x * x);
  }
};
// The tanh approximation of the same paper: 0.5 x (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  __device__ static float tanh_of(float x) { return tanhf(0.79788456f * (x + 0.044715f * x * x * x)); }
  __device__ static float value(float x) { return 0.5f * x * (1 + tanh_of(x)); }
  __device__ static void both(float x, float& value, float& slope) {
    const float t = tanh_of(x), bend = 1 - t * t;
    value = 0.5f * x * (1 + t);
    slope = 0.5f * (1 + t);
    // Far from zero the function is flat, and x * x may be infinite.
    if (bend != 0) slope += 0.5f * x * bend * 0.79788456f * (1 + 0.134145f * x * x);
  }
};
struct Silu {
  __device__ static float value(float x) { return x / (1 + expf(-x)); }
  __device__ static void both(float x, float& value, float& slope) {
    const float s = 1 / (1 + expf(-x));
    value = x * s;
    slope = s * (1 + x * (1 - s));
  }
};
struct Relu {
  __device__ static float value(float x) { return x > 0 ? x : 0; }
  __device__ static void both(float x, float& value, float& slope) { value = x > 0 ? x : 0, slope = x > 0 ? 1 : 0; }
};
// So et al. 2021, "Primer", section 4.
struct Relu2 {
  __device__ static float value(float x) { return x > 0 ? x * x : 0; }
  __device__ static void both(float x, float& value, float& slope) {
    value = x > 0 ? x * x : 0, slope = x > 0 ? 2 * x : 0;
  }
};
struct Tanh {
  __device__ static float value(float x) { return tanhf(x); }
  __device__ static void both(float x, float& value, float& slope) {
    value = tanhf(x);
    slope = 1 - value * value;
  }
};

// Calls f with a value of the function's type; does nothing for `none`.
template <typename F>
constexpr void with_function(GemmFunction function, const F& f) {
  switch (function) {
    case GemmFunction::none:
      return;
    case GemmFunction::gelu_tanh:
      return f(GeluTanh());
    case GemmFunction::gelu_erf:
      return f(GeluErf());
    case GemmFunction::silu:
      return f(Silu());
    case GemmFunction::relu:
      return f(Relu());
    case GemmFunction::relu2:
      return f(Relu2());
    case GemmFunction::tanh:
      return f(Tanh());
  }
}

__device__ inline float value_of(GemmFunction function, float x) {
  float value = 0;
  with_function(function, [&]<typename A>(A) { value = A::value(x); });
  return value;
}
__device__ inline float slope_of(GemmFunction function, float x) {
  float value = 0, slope = 0;
  with_function(function, [&]<typename A>(A) { A::both(x, value, slope); });
  return slope;
}

}  // namespace kintsugi::KINTSUGI_GPU
