#include "kintsugi/kernels/cpu/images.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/leaky_relu.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

// y = x where the sign is positive, otherwise slope * x; `sign`, x and y may alias.
void leaky_relu_part(tensor::DType dtype, const std::byte* sign, const std::byte* x, std::byte* y, base::Range r,
                     float slope) {
  for_type(dtype, [&]<typename T>(T) {
    const V by = set(slope);
    map([by](V s, V v) HWY_ATTR { return hn::IfThenElse(hn::Lt(zero(), s), v, hn::Mul(v, by)); }, r.size(),
        reinterpret_cast<T*>(y) + r.begin, reinterpret_cast<const T*>(sign) + r.begin,
        reinterpret_cast<const T*>(x) + r.begin);
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(leaky_relu_part);

namespace {

void run_leaky_relu(const KernelCall& call, const tensor::View& sign, const tensor::View& x) {
  const auto part = HWY_DYNAMIC_DISPATCH(leaky_relu_part);
  const tensor::View& y = call.outs[0];
  const auto slope = static_cast<float>(call.attributes.number("slope"));
  call.team.for_shares(y.elements(), 4096,
                       [&](base::Range r, int) { part(y.dtype(), sign.data, x.data, y.data, r, slope); });
}

}  // namespace

void leaky_relu(const KernelCall& call) {
  run_leaky_relu(call, call.ins[0], call.ins[0]);
}

void leaky_relu_grad(const KernelCall& call) {
  run_leaky_relu(call, call.ins[0], call.ins[1]);
}

}  // namespace kintsugi::kernels::cpu
#endif
