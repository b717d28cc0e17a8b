// Functions of CUDA's language for AMD's devices, without ROCm's library: what the backend of clang knows, and erf and
// tanh by polynomials.
#pragma once

#define KINTSUGI_MATH_(T, name, ...)         \
  static __device__ __forceinline__ T name { \
    return __VA_ARGS__;                      \
  }
KINTSUGI_MATH_(float, expf(float x), __builtin_expf(x))
KINTSUGI_MATH_(float, __expf(float x), __builtin_expf(x))
KINTSUGI_MATH_(float, exp2f(float x), __builtin_exp2f(x))
KINTSUGI_MATH_(float, logf(float x), __builtin_logf(x))
KINTSUGI_MATH_(float, log2f(float x), __builtin_log2f(x))
KINTSUGI_MATH_(float, sqrtf(float x), __builtin_sqrtf(x))
KINTSUGI_MATH_(double, sqrt(double x), __builtin_sqrt(x))
KINTSUGI_MATH_(float, rsqrtf(float x), 1.0f / __builtin_sqrtf(x))
KINTSUGI_MATH_(float, sinf(float x), __builtin_sinf(x))  // of less than a turn: rotary reduces what it asks for
KINTSUGI_MATH_(float, cosf(float x), __builtin_cosf(x))
KINTSUGI_MATH_(float, fabsf(float x), __builtin_fabsf(x))
KINTSUGI_MATH_(float, fabs(float x), __builtin_fabsf(x))
KINTSUGI_MATH_(double, fabs(double x), __builtin_fabs(x))
KINTSUGI_MATH_(double, floor(double x), __builtin_floor(x))
KINTSUGI_MATH_(float, fmaxf(float x, float y), __builtin_fmaxf(x, y))
#undef KINTSUGI_MATH_

// x^n for a count n.
static __device__ __forceinline__ double pow(double x, double n) {
  double power = 1;
  for (auto left = static_cast<uint64_t>(n); left > 0; left /= 2, x *= x)
    if (left % 2 == 1) power *= x;
  return power;
}

// Within 1e-7.
static __device__ __forceinline__ float erff(float x) {
  const float a = __builtin_fabsf(x), s = x * x;
  float r = 0;
  if (a > 0.921875f) {
    r = __builtin_fmaf(-1.72853470e-5f, a, 3.83197126e-4f);
    r = __builtin_fmaf(r, s, __builtin_fmaf(-3.88396438e-3f, a, 2.42546219e-2f));
    for (const float next : {-1.06777877e-1f, -6.34846687e-1f, -1.28717512e-1f}) r = __builtin_fmaf(r, a, next);
    r = 1 - __builtin_expf(__builtin_fmaf(r, a, -a));
    r = __builtin_copysignf(r, x);
  } else {
    r = -5.96761703e-4f;
    for (const float next : {4.99119423e-3f, -2.67681349e-2f, 1.12819925e-1f, -3.76125336e-1f, 1.28379166e-1f})
      r = __builtin_fmaf(r, s, next);
    r = __builtin_fmaf(r, x, x);
  }
  return r;
}

// Within 1e-7.
static __device__ __forceinline__ float tanhf(float x) {
  const float a = __builtin_fabsf(x);
  if (a > 0.55f) return __builtin_copysignf(1 - 2 / (__builtin_expf(2 * a) + 1), x);
  const float s = x * x;
  float r = 1.57394409e-2f;
  for (const float next : {-5.23025207e-2f, 1.33152470e-1f, -3.33327681e-1f, 0.0f}) r = __builtin_fmaf(r, s, next);
  return __builtin_fmaf(r, x, x);
}
