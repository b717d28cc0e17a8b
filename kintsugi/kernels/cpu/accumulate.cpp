#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/accumulate.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

namespace {
struct Add {
  HWY_INLINE V operator()(V y, V x) const { return hn::Add(y, x); }
};
struct Copy {
  HWY_INLINE V operator()(V x) const { return x; }
};
}  // namespace

void accumulate_part(const KernelCall& call, base::Range r) {
  for_type(call.ins[0].dtype(), [&]<typename T>(T) {
    const T* x = reinterpret_cast<const T*>(call.ins[0].data) + r.begin;
    for_type(call.outs[0].dtype(), [&]<typename G>(G) {
      G* y = reinterpret_cast<G*>(call.outs[0].data) + r.begin;
      if (call.accumulates(0)) {
        map(Add(), r.size(), y, y, x);
      } else {
        map(Copy(), r.size(), y, x);
      }
    });
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(accumulate_part);

bool accumulate_takes(const Operands& o) {
  return cast_takes(o) || one_number(o);
}

void accumulate(const KernelCall& call) {
  if (call.outs[0].dtype() == tensor::DType::f64) {
    double &y = call.outs[0].as<double>()[0], x = call.ins[0].as<double>()[0];
    y = call.accumulates(0) ? y + x : x;
    return;
  }
  const auto part = HWY_DYNAMIC_DISPATCH(accumulate_part);
  call.team.for_shares(call.outs[0].elements(), 4096, [&](base::Range r, int) { part(call, r); });
}

// The first accumulation is a cast.
void cast(const KernelCall& call) {
  accumulate(call);
}

bool cast_takes(const Operands& o) {
  return is_fast(o.ins[0].dtype) && is_fast(o.outs[0].dtype);
}

}  // namespace kintsugi::kernels::cpu
#endif
