#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/attention_join.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {
namespace {
struct Weigh {
  float a, b;
  HWY_INLINE V operator()(V x, V y) const { return hn::MulAdd(set(a), x, hn::Mul(set(b), y)); }
};
struct Copy {
  HWY_INLINE V operator()(V x) const { return x; }
};
}  // namespace

// o: [rows head_dim], lse: [rows]
void attention_join_part(const KernelCall& call, base::Range rows) {
  const int64_t head_dim = call.outs[0].size("head_dim");
  const auto lse = [&](const tensor::View& v) { return reinterpret_cast<float*>(v.data); };
  for_type(call.ins[0].dtype(), [&]<typename T>(T) {
    const T* o_a = reinterpret_cast<const T*>(call.ins[0].data);
    T* o = reinterpret_cast<T*>(call.outs[0].data);
    for_type(call.ins[2].dtype(), [&]<typename U>(U) {
      const U* o_b = reinterpret_cast<const U*>(call.ins[2].data);
      for (int64_t i = rows.begin; i < rows.end; ++i) {
        const float a = lse(call.ins[1])[i], b = lse(call.ins[3])[i], top = std::max(a, b);
        const int64_t at = i * head_dim;
        if (b == -INFINITY) {  // nothing new: as it was, to the bit
          lse(call.outs[1])[i] = a;
          if (o != o_a) map(Copy(), head_dim, o + at, o_a + at);
          continue;
        }
        const float part_a = std::exp(a - top), part_b = std::exp(b - top), sum = part_a + part_b;
        lse(call.outs[1])[i] = top + std::log(sum);
        map(Weigh{part_a / sum, part_b / sum}, head_dim, o + at, o_a + at, o_b + at);
      }
    });
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(attention_join_part);

bool attention_join_takes(const Operands& o) {
  return is_fast(o.ins[0].dtype) && is_fast(o.ins[2].dtype) && o.ins[1].dtype == tensor::DType::f32 &&
         o.ins[3].dtype == tensor::DType::f32;
}

void attention_join(const KernelCall& call) {
  const auto part = HWY_DYNAMIC_DISPATCH(attention_join_part);
  call.team.for_shares(call.outs[1].elements(), 64, [&](base::Range r, int) { part(call, r); });
}

}  // namespace kintsugi::kernels::cpu
#endif
