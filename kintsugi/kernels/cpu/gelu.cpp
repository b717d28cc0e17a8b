#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/gelu.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

void gelu_part(const KernelCall& call, base::Range r) {
  if (call.attributes.text("form") == "tanh") {
    map_unary(ValueOf<GeluTanh>(), call, r);
  } else {
    map_unary(ValueOf<GeluErf>(), call, r);
  }
}
void gelu_grad_part(const KernelCall& call, base::Range r) {
  if (call.attributes.text("form") == "tanh") {
    map_binary(SlopeTimes<GeluTanh>(), call, r);
  } else {
    map_binary(SlopeTimes<GeluErf>(), call, r);
  }
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(gelu_part);

void gelu(const KernelCall& call) {
  const auto part = HWY_DYNAMIC_DISPATCH(gelu_part);
  call.team.for_shares(call.outs[0].elements(), 4096, [&](base::Range r, int) { part(call, r); });
}

HWY_EXPORT(gelu_grad_part);

void gelu_grad(const KernelCall& call) {
  const auto part = HWY_DYNAMIC_DISPATCH(gelu_grad_part);
  call.team.for_shares(call.outs[0].elements(), 4096, [&](base::Range r, int) { part(call, r); });
}

}  // namespace kintsugi::kernels::cpu
#endif
