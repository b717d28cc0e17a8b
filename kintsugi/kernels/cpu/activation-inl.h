// Activations and their derivatives on vectors, once per SIMD target.
#if defined(KINTSUGI_ACTIVATION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KINTSUGI_ACTIVATION_INL
#undef KINTSUGI_ACTIVATION_INL
#else
#define KINTSUGI_ACTIVATION_INL
#endif

#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

struct Relu {
  static HWY_INLINE V value(V x) { return hn::IfThenZeroElse(hn::Lt(x, zero()), x); }
  static HWY_INLINE V slope(V x) { return hn::IfThenElseZero(hn::Lt(zero(), x), set(1.0f)); }
};

struct Relu2 {
  static HWY_INLINE V value(V x) {
    const V positive = Relu::value(x);
    return hn::Mul(positive, positive);
  }
  static HWY_INLINE V slope(V x) {
    const V positive = Relu::value(x);
    return hn::Add(positive, positive);
  }
};

struct Tanh {
  static HWY_INLINE V value(V x) { return tanh_of(x); }
  static HWY_INLINE V slope(V x) {
    const V y = tanh_of(x);
    return hn::NegMulAdd(y, y, set(1.0f));
  }
};

struct Silu {
  static HWY_INLINE V value(V x) { return hn::Mul(x, sigmoid(x)); }
  // s + x s (1 - s)
  static HWY_INLINE V slope(V x) {
    const V s = sigmoid(x);
    return hn::MulAdd(hn::Mul(x, s), hn::Sub(set(1.0f), s), s);
  }
};

// (1 + tanh(u)) / 2 is the sigmoid of 2u, u = sqrt(2 / pi) (x + 0.044715 x^3). At -kFar it is 1e-37, and at kFar 1: x
// is clamped to that range, so that everything is finite. Min and Max return the second operand for NaN.
struct GeluTanh {
  static constexpr float kFar = 9.9f, kTwiceU = 2 * 0.7978845608f, kCubic = kTwiceU * 0.044715f, kLog2E = 1.44269504f;

  static HWY_INLINE V not_below(V x) { return hn::Max(set(-kFar), x); }
  static HWY_INLINE V not_far(V x) { return hn::Min(set(kFar), not_below(x)); }
  // For clamped x; `square`: its square.
  static HWY_INLINE V sigmoid_of(V x, V square) {
    return inverse_of_one_plus_power(hn::Mul(x, hn::MulAdd(square, set(-kLog2E * kCubic), set(-kLog2E * kTwiceU))));
  }
  static HWY_INLINE V value(V x) {
    const V near = not_far(x);
    return hn::Mul(not_below(x), sigmoid_of(near, hn::Mul(near, near)));
  }
  static HWY_INLINE V slope(V x) {
    const V near = not_far(x), square = hn::Mul(near, near), s = sigmoid_of(near, square);
    const V du = hn::MulAdd(square, set(3 * kCubic), set(kTwiceU));
    return hn::MulAdd(hn::Mul(near, du), hn::NegMulAdd(s, s, s), s);
  }
};

// x times the normal cumulative distribution function.
struct GeluErf {
  // erfc(z) for z >= 0: t e^(-z^2 + p(t)), t = 1 / (1 + z / 2), p fitted over [0, 10.5].
  static HWY_INLINE V erfc_of(V z) {
    const V t = hn::Div(set(1.0f), hn::MulAdd(z, set(0.5f), set(1.0f)));
    V p = set(kErfc[0]);
    for (int i = 1; i < kErfcTerms; ++i) p = hn::MulAdd(p, t, set(kErfc[i]));
    return hn::Mul(t, exp_of(hn::NegMulAdd(z, z, p)));
  }
  static HWY_INLINE V distribution(V x) {
    const V z = hn::Mul(hn::Abs(x), set(0.70710678f));
    const V half = hn::Mul(set(0.5f), erfc_of(hn::Min(z, set(10.5f))));
    return hn::IfThenElse(hn::Lt(x, zero()), half, hn::Sub(set(1.0f), half));
  }
  static HWY_INLINE V value(V x) { return hn::Mul(x, distribution(x)); }
  static HWY_INLINE V slope(V x) {
    const V density = hn::Mul(set(0.3989422804f), exp_of(hn::Mul(hn::Mul(x, x), set(-0.5f))));
    return hn::MulAdd(hn::IfThenZeroElse(hn::Eq(density, zero()), x), density, distribution(x));
  }

  static constexpr int kErfcTerms = 10;
  static constexpr float kErfc[kErfcTerms] = {0.148791149f,   -0.701847255f,  1.20616949f,   -0.761984169f,
                                              -0.0259946808f, -0.0275120921f, 0.0443623438f, 0.384606361f,
                                              0.998868406f,   -1.26545954f};
};

template <typename A>
struct ValueOf {
  HWY_INLINE V operator()(V x) const { return A::value(x); }
};
template <typename A>
struct SlopeTimes {
  HWY_INLINE V operator()(V x, V dy) const { return hn::Mul(A::slope(x), dy); }
};

// One thread's share of the elements of y = f(x...), all in the first input's dtype.
template <typename F>
void map_unary(const F& f, const KernelCall& call, base::Range r) {
  for_type(call.ins[0].dtype(), [&]<typename T>(T) {
    map(f, r.size(), reinterpret_cast<T*>(call.outs[0].data) + r.begin,
        reinterpret_cast<const T*>(call.ins[0].data) + r.begin);
  });
}
template <typename F>
void map_binary(const F& f, const KernelCall& call, base::Range r) {
  for_type(call.ins[0].dtype(), [&]<typename T>(T) {
    map(f, r.size(), reinterpret_cast<T*>(call.outs[0].data) + r.begin,
        reinterpret_cast<const T*>(call.ins[0].data) + r.begin, reinterpret_cast<const T*>(call.ins[1].data) + r.begin);
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
