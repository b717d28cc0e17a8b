// Exponentials of vectors and what is made of them, within a few ulps of fp32, once per SIMD target.
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
HWY_INLINE V exp_of(V x) {
  return hn::IfThenElse(hn::Eq(x, x), hn::Exp(D(), hn::Min(x, set(100.0f))), x);
}

// 1 / (1 + e^-x)
HWY_INLINE V sigmoid(V x) {
  return hn::Div(set(1.0f), hn::Add(set(1.0f), exp_of(hn::Neg(x))));
}

HWY_INLINE V tanh_of(V x) {
  return hn::IfThenElse(hn::Eq(x, x), hn::Tanh(D(), x), x);
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
