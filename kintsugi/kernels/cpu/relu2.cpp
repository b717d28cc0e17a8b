#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/relu2.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

void relu2_part(const KernelCall& call, base::Range r) {
  map_unary(ValueOf<Relu2>(), call, r);
}
void relu2_grad_part(const KernelCall& call, base::Range r) {
  map_binary(SlopeTimes<Relu2>(), call, r);
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(relu2_part);

void relu2(const KernelCall& call) {
  const auto part = HWY_DYNAMIC_DISPATCH(relu2_part);
  call.team.for_shares(call.outs[0].elements(), 4096, [&](base::Range r, int) { part(call, r); });
}

HWY_EXPORT(relu2_grad_part);

void relu2_grad(const KernelCall& call) {
  const auto part = HWY_DYNAMIC_DISPATCH(relu2_grad_part);
  call.team.for_shares(call.outs[0].elements(), 4096, [&](base::Range r, int) { part(call, r); });
}

}  // namespace kintsugi::kernels::cpu
#endif
