#include "kintsugi/kernels/cpu/experts.h"
#include "kintsugi/kernels/cpu/filled_slots.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/clamped_gated.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {
namespace {

struct Clamped {
  V clamp, slope;

  explicit Clamped(const KernelCall& call)
      : clamp(set(static_cast<float>(call.attributes.number("clamp")))),
        slope(set(static_cast<float>(call.attributes.number("slope")))) {}
  HWY_INLINE V gate_of(V gate) const { return hn::Min(gate, clamp); }
  HWY_INLINE V up_of(V up) const { return hn::Min(hn::Max(up, hn::Neg(clamp)), clamp); }
  HWY_INLINE V share_of(V g) const { return sigmoid(hn::Mul(slope, g)); }
};

struct ClampedProduct : Clamped {
  using Clamped::Clamped;
  HWY_INLINE V operator()(V gate, V up) const {
    const V g = gate_of(gate), glu = hn::Mul(g, share_of(g));
    return hn::MulAdd(glu, up_of(up), glu);
  }
};

struct ClampedGateSlope : Clamped {
  using Clamped::Clamped;
  HWY_INLINE V operator()(V gate, V up, V dy) const {
    const V g = gate_of(gate), s = share_of(g), one = set(1.0f);
    const V by = hn::Mul(s, hn::MulAdd(hn::Mul(slope, g), hn::Sub(one, s), one));
    const V dgate = hn::Mul(hn::Mul(dy, hn::Add(up_of(up), one)), by);
    return hn::IfThenElseZero(hn::Le(gate, clamp), dgate);
  }
};

struct ClampedUpSlope : Clamped {
  using Clamped::Clamped;
  HWY_INLINE V operator()(V gate, V up, V dy) const {
    const V g = gate_of(gate);
    return hn::IfThenElseZero(hn::Le(hn::Abs(up), clamp), hn::Mul(dy, hn::Mul(g, share_of(g))));
  }
};

}  // namespace

void clamped_gated_part(const KernelCall& call, base::Range r) {
  for_type(call.ins[0].dtype(), [&]<typename T>(T) {
    const auto in = [&](size_t i) { return reinterpret_cast<const T*>(call.ins[i].data) + r.begin; };
    map(ClampedProduct(call), r.size(), reinterpret_cast<T*>(call.outs[0].data) + r.begin, in(0), in(1));
  });
}

void clamped_gated_grad_part(const KernelCall& call, base::Range r) {
  using In = GatedGradIn;
  for_type(call.ins[0].dtype(), [&]<typename T>(T) {
    const auto in = [&](size_t i) { return reinterpret_cast<const T*>(call.ins[i].data) + r.begin; };
    const auto out = [&](size_t i) { return reinterpret_cast<T*>(call.outs[i].data) + r.begin; };
    map(ClampedGateSlope(call), r.size(), out(0), in(In::kGate), in(In::kUp), in(In::kDy));
    map(ClampedUpSlope(call), r.size(), out(1), in(In::kGate), in(In::kUp), in(In::kDy));
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(clamped_gated_part);
HWY_EXPORT(clamped_gated_grad_part);

void clamped_gated(const KernelCall& call) {
  for_gated_elements(call, call.ins[GatedIn::kCounts], HWY_DYNAMIC_DISPATCH(clamped_gated_part));
}

void clamped_gated_grad(const KernelCall& call) {
  for_gated_elements(call, call.ins[GatedGradIn::kCounts], HWY_DYNAMIC_DISPATCH(clamped_gated_grad_part));
}

}  // namespace kintsugi::kernels::cpu
#endif
