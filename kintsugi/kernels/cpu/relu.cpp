#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/relu.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

void relu_part(const KernelCall& call, base::Range r) {
  map_unary(ValueOf<Relu>(), call, r);
}
void relu_grad_part(const KernelCall& call, base::Range r) {
  map_binary(SlopeTimes<Relu>(), call, r);
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(relu_part);

void relu(const KernelCall& call) {
  const auto part = HWY_DYNAMIC_DISPATCH(relu_part);
  call.team.for_shares(call.outs[0].elements(), 4096, [&](base::Range r, int) { part(call, r); });
}

HWY_EXPORT(relu_grad_part);

void relu_grad(const KernelCall& call) {
  const auto part = HWY_DYNAMIC_DISPATCH(relu_grad_part);
  call.team.for_shares(call.outs[0].elements(), 4096, [&](base::Range r, int) { part(call, r); });
}

}  // namespace kintsugi::kernels::cpu
#endif
