#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/scale.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

namespace {
struct By {
  float by;
  HWY_INLINE V operator()(V x) const { return hn::Mul(x, set(by)); }
};
}  // namespace

void scale_part(const KernelCall& call, base::Range r) {
  map_unary(By{static_cast<float>(call.attributes.number("by"))}, call, r);
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(scale_part);

void scale(const KernelCall& call) {
  const auto part = HWY_DYNAMIC_DISPATCH(scale_part);
  call.team.for_shares(call.outs[0].elements(), 4096, [&](base::Range r, int) { part(call, r); });
}

}  // namespace kintsugi::kernels::cpu
#endif
