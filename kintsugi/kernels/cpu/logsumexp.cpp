#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/logsumexp.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {
namespace {
struct Larger {
  // Propagates a NaN on either side.
  HWY_INLINE V operator()(V x, V y) const {
    return hn::IfThenElse(hn::Eq(x, x), hn::IfThenElse(hn::Lt(y, x), x, y), x);
  }
};
struct AddBelow {
  HWY_INLINE V operator()(V sum, V top, V x) const { return hn::Add(sum, exp_of(hn::Sub(x, top))); }
};
constexpr int64_t kChunk = 256;
}  // namespace

// x: [part columns], y: [columns]
void logsumexp_part(const KernelCall& call, base::Range r) {
  const int64_t columns = call.outs[0].elements(), parts = call.ins[0].shape()[0].size;
  const float* x = reinterpret_cast<const float*>(call.ins[0].data);
  float* y = reinterpret_cast<float*>(call.outs[0].data);
  HWY_ALIGN float top[kChunk], sum[kChunk];
  for (int64_t begin = r.begin; begin < r.end; begin += kChunk) {
    const int64_t n = std::min(kChunk, r.end - begin);
    std::copy_n(x + begin, n, top);
    for (int64_t p = 1; p < parts; ++p) map(Larger(), n, top, static_cast<const float*>(top), x + p * columns + begin);
    std::fill_n(sum, n, 0.0f);
    for (int64_t p = 0; p < parts; ++p)
      map(AddBelow(), n, sum, static_cast<const float*>(sum), static_cast<const float*>(top), x + p * columns + begin);
    for (int64_t i = 0; i < n; ++i) y[begin + i] = std::isinf(top[i]) ? top[i] : top[i] + std::log(sum[i]);
  }
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(logsumexp_part);

bool logsumexp_takes(const Operands& o) {
  return o.ins[0].dtype == tensor::DType::f32 && o.outs[0].dtype == tensor::DType::f32;
}

void logsumexp(const KernelCall& call) {
  const auto part = HWY_DYNAMIC_DISPATCH(logsumexp_part);
  call.team.for_shares(call.outs[0].elements(), 1024, [&](base::Range r, int) { part(call, r); });
}

}  // namespace kintsugi::kernels::cpu
#endif
