// Vector exponentials and functions derived from them, within a few ulps of fp32, once per SIMD target.
#if defined(KINTSUGI_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KINTSUGI_MATH_INL
#undef KINTSUGI_MATH_INL
#else
#define KINTSUGI_MATH_INL
#endif

#include "hwy/contrib/math/math-inl.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

// e^x; 0 below -104, infinity above 88.7, NaN of NaN.
#if HWY_TARGET == HWY_AVX3
// max(x, -200), whose exponential is 0. NaN stays NaN: Max returns the second operand.
HWY_INLINE V not_far_below(V x) {
  return hn::Max(set(-200.0f), x);
}

// e^x = 2^n e^f, n an integer and |f| <= ln(2) / 2; e^f = 1 + f (1 + f q(f)), q fitted to 3e-9. AVX-512 has powers of
// 2.
HWY_INLINE V exp_of(V x) {
  x = not_far_below(hn::Min(set(200.0f), x));
  const V n = hn::Round(hn::Mul(x, set(1.44269504f)));
  const V f = hn::NegMulAdd(n, set(-2.12194440e-4f), hn::NegMulAdd(n, set(0.693359375f), x));  // n ln(2) in two parts
  V q = set(1.38144672e-3f);
  q = hn::MulAdd(q, f, set(8.36878084e-3f));
  q = hn::MulAdd(q, f, set(4.16683927e-2f));
  q = hn::MulAdd(q, f, set(1.66665196e-1f));
  q = hn::MulAdd(q, f, set(4.99999940e-1f));
  return V{_mm512_scalef_ps(hn::MulAdd(f, hn::MulAdd(f, q, set(1.0f)), set(1.0f)).raw, n.raw)};
}
#else
HWY_INLINE V exp_of(V x) {
  return hn::IfThenElse(hn::Eq(x, x), hn::Exp(D(), hn::Min(x, set(100.0f))), x);
}
#endif

// 1 / (1 + e^-x)
HWY_INLINE V sigmoid(V x) {
  return hn::Div(set(1.0f), hn::Add(set(1.0f), exp_of(hn::Neg(x))));
}

// 1 / (1 + 2^t), |t| <= 126. Propagates NaN.
#if HWY_TARGET == HWY_AVX3
// 2^t = 2^n 2^f, n an integer and |f| <= 1/2; 2^f = 1 + f q(f), q fitted to 2e-9. AVX-512 has powers of 2, and
// reciprocals to 14 bits, which one Newton step completes: half the operations of a division and Highway's exponential.
HWY_INLINE V inverse_of_one_plus_power(V t) {
  const V n = hn::Round(t), f = hn::Sub(t, n);
  V q = set(1.53533464e-4f);
  q = hn::MulAdd(q, f, set(1.33988937e-3f));
  q = hn::MulAdd(q, f, set(9.61843754e-3f));
  q = hn::MulAdd(q, f, set(5.55033243e-2f));
  q = hn::MulAdd(q, f, set(2.40226479e-1f));
  q = hn::MulAdd(q, f, set(6.93147203e-1f));
  const V power = V{_mm512_scalef_ps(hn::MulAdd(f, q, set(1.0f)).raw, n.raw)}, d = hn::Add(power, set(1.0f));
  const V about = V{_mm512_rcp14_ps(d.raw)};
  return hn::MulAdd(about, hn::NegMulAdd(d, about, set(1.0f)), about);
}
#else
HWY_INLINE V inverse_of_one_plus_power(V t) {
  return hn::Div(set(1.0f), hn::Add(set(1.0f), exp_of(hn::Mul(t, set(0.69314718f)))));
}
#endif

HWY_INLINE V tanh_of(V x) {
  return hn::IfThenElse(hn::Eq(x, x), hn::Tanh(D(), x), x);
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
