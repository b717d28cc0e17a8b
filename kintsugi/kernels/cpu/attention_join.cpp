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
  using In = AttentionJoinIn;
  using Out = AttentionOut;
  const int64_t head_dim = call.outs[Out::kO].size("head_dim");
  const auto lse = [&](const tensor::View& v) { return reinterpret_cast<float*>(v.data); };
  for_type(call.ins[In::kOA].dtype(), [&]<typename T>(T) {
    const T* o_a = reinterpret_cast<const T*>(call.ins[In::kOA].data);
    T* o = reinterpret_cast<T*>(call.outs[Out::kO].data);
    for_type(call.ins[In::kOB].dtype(), [&]<typename U>(U) {
      const U* o_b = reinterpret_cast<const U*>(call.ins[In::kOB].data);
      for (int64_t i = rows.begin; i < rows.end; ++i) {
        const float a = lse(call.ins[In::kLseA])[i], b = lse(call.ins[In::kLseB])[i], top = std::max(a, b);
        const int64_t at = i * head_dim;
        if (b == -INFINITY) {  // nothing to add: unchanged bit for bit
          lse(call.outs[Out::kLse])[i] = a;
          if (o != o_a) map(Copy(), head_dim, o + at, o_a + at);
          continue;
        }
        const float part_a = std::exp(a - top), part_b = std::exp(b - top), sum = part_a + part_b;
        lse(call.outs[Out::kLse])[i] = top + std::log(sum);
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
  using In = AttentionJoinIn;
  return is_fast(o.ins[In::kOA].dtype) && is_fast(o.ins[In::kOB].dtype) &&
         o.ins[In::kLseA].dtype == tensor::DType::f32 && o.ins[In::kLseB].dtype == tensor::DType::f32;
}

void attention_join(const KernelCall& call) {
  const auto part = HWY_DYNAMIC_DISPATCH(attention_join_part);
  call.team.for_shares(call.outs[AttentionOut::kLse].elements(), 64, [&](base::Range r, int) { part(call, r); });
}

}  // namespace kintsugi::kernels::cpu
#endif
