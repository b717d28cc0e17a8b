// CUDA's math functions for AMD devices, without ROCm's library: clang builtins, and polynomials for erf and tanh, and
// for exp, log and cos in fp64.
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
KINTSUGI_MATH_(float, sinf(float x), __builtin_sinf(x))  // less than one turn: rotary reduces its arguments
KINTSUGI_MATH_(float, cosf(float x), __builtin_cosf(x))
KINTSUGI_MATH_(float, fabsf(float x), __builtin_fabsf(x))
KINTSUGI_MATH_(float, fabs(float x), __builtin_fabsf(x))
KINTSUGI_MATH_(double, fabs(double x), __builtin_fabs(x))
KINTSUGI_MATH_(double, floor(double x), __builtin_floor(x))
KINTSUGI_MATH_(float, rintf(float x), __builtin_rintf(x))
KINTSUGI_MATH_(float, fmaxf(float x, float y), __builtin_fmaxf(x, y))
KINTSUGI_MATH_(float, fmaf(float x, float y, float z), __builtin_fmaf(x, y, z))
#undef KINTSUGI_MATH_

// x^n for an integer n >= 0.
static __device__ __forceinline__ double pow(double x, double n) {
  double power = 1;
  for (auto left = static_cast<uint64_t>(n); left > 0; left /= 2, x *= x)
    if (left % 2 == 1) power *= x;
  return power;
}

// For normal numbers: x = m 2^e with m in [sqrt(1/2), sqrt(2)], and log m = 2 (s + s^3/3 + s^5/5 + ...) with s = (m -
// 1) / (m + 1), |s| <= 0.172; ln 2 is split in two parts, so that e times the first is exact.
static __device__ __forceinline__ double log(double x) {
  const auto bits = __builtin_bit_cast(uint64_t, x) - 0x3FE6A09E667F3BCDull;
  const double m = __builtin_bit_cast(double, (bits & 0x000FFFFFFFFFFFFFull) + 0x3FE6A09E667F3BCDull);
  const auto e = static_cast<double>(static_cast<int64_t>(bits) >> 52);
  const double s = (m - 1) / (m + 1), square = s * s;
  double r = 0;
  for (int n = 23; n >= 3; n -= 2) r = __builtin_fma(r, square, 1.0 / n);
  r = 2 * __builtin_fma(r * square, s, s);
  return __builtin_fma(e, 0x1.62e42fefa3800p-1, __builtin_fma(e, 0x1.ef35793c76730p-45, r));
}

// Goldberg, "What every computer scientist should know about floating-point arithmetic", theorem 4.
static __device__ __forceinline__ double log1p(double x) {
  const double sum = 1 + x;
  return sum == 1 ? x : log(sum) * (x / (sum - 1));
}

// exp x = 2^n exp r with |r| <= ln 2 / 2, and the power series of exp r.
static __device__ __forceinline__ double exp(double x) {
  const double n = __builtin_floor(__builtin_fma(x, 0x1.71547652b82fep+0, 0.5));
  if (!(n > -1022)) return x != x ? x : 0;
  if (n > 1023) return __builtin_inf();
  const double r = __builtin_fma(-n, 0x1.ef35793c76730p-45, __builtin_fma(-n, 0x1.62e42fefa3800p-1, x));
  double sum = 1;
  for (int k = 14; k > 0; --k) sum = __builtin_fma(sum, r / k, 1.0);
  return sum * __builtin_bit_cast(double, static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52);
}

// For a few turns at most: reduces to a quarter turn, then uses the series of cos and sin.
static __device__ __forceinline__ double cos(double x) {
  const double quarters = __builtin_floor(__builtin_fma(x, 0x1.45f306dc9c883p-1, 0.5));
  const double r = __builtin_fma(-quarters, 0x1.1a62633145c07p-54, __builtin_fma(-quarters, 0x1.921fb54442d18p+0, x));
  const int quarter = static_cast<int>(quarters) & 3;
  double term = quarter % 2 == 0 ? 1 : r, sum = term;
  for (int n = quarter % 2 + 1; n < 20; n += 2) {
    term *= -r * r / (n * (n + 1));
    sum += term;
  }
  return quarter == 1 || quarter == 2 ? -sum : sum;
}

// Error below 2e-7. Below 1 the power series, 2 / sqrt(pi) times the sum of (-1)^n x^(2n+1) / (n! (2n+1)); above it 1 -
// erfc, as the CPU kernels compute it (GeluErf in kernels/cpu/activation-inl.h).
static __device__ __forceinline__ float erff(float x) {
  const float a = __builtin_fabsf(x), s = x * x;
  if (a < 1) {
    float r = -1.0f / 6894720;
    for (const float n : {685440.0f, -75600.0f, 9360.0f, -1320.0f, 216.0f, -42.0f, 10.0f, -3.0f, 1.0f})
      r = __builtin_fmaf(r, s, 1 / n);
    return 1.12837917f * x * r;
  }
  const float t = 1 / __builtin_fmaf(a, 0.5f, 1.0f);
  float p = 0.148791149f;
  for (const float next : {-0.701847255f, 1.20616949f, -0.761984169f, -0.0259946808f, -0.0275120921f, 0.0443623438f,
                           0.384606361f, 0.998868406f, -1.26545954f})
    p = __builtin_fmaf(p, t, next);
  return __builtin_copysignf(1 - t * __builtin_expf(__builtin_fmaf(-a, a, p)), x);
}

// Error below 2e-7. Near 0, Lambert's continued fraction with five terms.
static __device__ __forceinline__ float tanhf(float x) {
  const float a = __builtin_fabsf(x), s = x * x;
  if (a > 0.55f) return __builtin_copysignf(1 - 2 / (__builtin_expf(2 * a) + 1), x);
  return x * __builtin_fmaf(s + 105, s, 945.0f) / __builtin_fmaf(__builtin_fmaf(15.0f, s, 420.0f), s, 945.0f);
}
