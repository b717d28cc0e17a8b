#include "kintsugi/kernels/cpu/filled_slots.h"
#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/gated.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

template <typename A>
struct ValueTimes {
  HWY_INLINE V operator()(V gate, V up) const { return hn::Mul(A::value(gate), up); }
};
template <typename A>
struct SlopeTimesBoth {
  HWY_INLINE V operator()(V gate, V up, V dy) const { return hn::Mul(hn::Mul(dy, up), A::slope(gate)); }
};

// Calls f with the activation of the call.
template <typename F>
void for_activation(const KernelCall& call, const F& f) {
  const std::string& name = call.attributes.text("activation");
  if (name == "silu") return f(Silu());
  if (name == "gelu") return f(GeluErf());
  if (name == "gelu_tanh") return f(GeluTanh());
  if (name == "relu2") return f(Relu2());
  base::require(name == "relu", "gated", "no activation \"{}\"", name);
  f(Relu());
}

template <typename A, typename T>
void gated_as(const KernelCall& call, base::Range r) {
  const auto in = [&](size_t i) { return reinterpret_cast<const T*>(call.ins[i].data) + r.begin; };
  map(ValueTimes<A>(), r.size(), reinterpret_cast<T*>(call.outs[0].data) + r.begin, in(0), in(1));
}
template <typename A, typename T>
void gated_grad_as(const KernelCall& call, base::Range r) {
  using In = GatedGradIn;
  const auto in = [&](size_t i) { return reinterpret_cast<const T*>(call.ins[i].data) + r.begin; };
  const auto out = [&](size_t i) { return reinterpret_cast<T*>(call.outs[i].data) + r.begin; };
  map(SlopeTimesBoth<A>(), r.size(), out(0), in(In::kGate), in(In::kUp), in(In::kDy));
  map(ValueTimes<A>(), r.size(), out(1), in(In::kGate), in(In::kDy));
}

void gated_part(const KernelCall& call, base::Range r) {
  for_activation(
      call, [&]<typename A>(A) { for_type(call.ins[0].dtype(), [&]<typename T>(T) { gated_as<A, T>(call, r); }); });
}
void gated_grad_part(const KernelCall& call, base::Range r) {
  for_activation(call, [&]<typename A>(A) {
    for_type(call.ins[0].dtype(), [&]<typename T>(T) { gated_grad_as<A, T>(call, r); });
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(gated_part);
HWY_EXPORT(gated_grad_part);

void gated(const KernelCall& call) {
  for_gated_elements(call, call.ins[GatedIn::kCounts], HWY_DYNAMIC_DISPATCH(gated_part));
}

void gated_grad(const KernelCall& call) {
  for_gated_elements(call, call.ins[GatedGradIn::kCounts], HWY_DYNAMIC_DISPATCH(gated_grad_part));
}

bool gated_takes(const Operands& o) {
  return is_fast(o.ins[GatedIn::kGate].dtype) && (!o.ins.has(GatedIn::kCounts) || has_slot_rows(o.outs[0].shape));
}
bool gated_grad_takes(const Operands& o) {
  return is_fast(o.ins[GatedGradIn::kGate].dtype) &&
         (!o.ins.has(GatedGradIn::kCounts) || has_slot_rows(o.outs[0].shape));
}

}  // namespace kintsugi::kernels::cpu
#endif
