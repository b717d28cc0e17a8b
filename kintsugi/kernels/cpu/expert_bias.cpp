// Biases of experts over filled slots. x, dy: [batch expert slot wide], bias, dbias: [expert wide], counts: [batch
// expert]
#include "kintsugi/kernels/cpu/experts.h"
#include "kintsugi/kernels/cpu/filled_slots.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/expert_bias.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {
namespace {

struct SumOfTwo {
  HWY_INLINE V operator()(V a, V b) const { return hn::Add(a, b); }
};

}  // namespace

// A slot: `wide` elements of x, from `at` on, plus the expert's bias, from `from` on.
void add_expert_bias(const KernelCall& call, int64_t at, int64_t from, int64_t wide) {
  for_type(call.outs[0].dtype(), [&]<typename T>(T) {
    map(SumOfTwo(), wide, reinterpret_cast<T*>(call.outs[0].data) + at,
        reinterpret_cast<const T*>(call.ins[ExpertBiasIn::kX].data) + at,
        reinterpret_cast<const T*>(call.ins[ExpertBiasIn::kBias].data) + from);
  });
}

void add_slot_to_sum(const KernelCall& call, int64_t at, float* sum, int64_t wide) {
  for_type(call.ins[0].dtype(), [&]<typename T>(T) {
    map(SumOfTwo(), wide, sum, reinterpret_cast<const T*>(call.ins[0].data) + at, static_cast<const float*>(sum));
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(add_expert_bias);
HWY_EXPORT(add_slot_to_sum);

bool expert_bias_takes(const Operands& o) {
  const tensor::Shape& x = o.ins[ExpertBiasIn::kX].shape;
  const bool backward = o.outs[0].shape.rank() == 2;
  return has_slot_rows(x) && is_fast(o.ins[0].dtype) &&
         (backward ? o.outs[0].dtype == tensor::DType::f32 : is_fast(o.outs[0].dtype));
}

void expert_bias(const KernelCall& call) {
  const tensor::Shape& shape = call.ins[ExpertBiasIn::kX].shape();
  const FilledSlots slots(call, shape, call.ins[ExpertBiasIn::kCounts]);
  const int64_t wide = shape[3].size;
  const auto add = HWY_DYNAMIC_DISPATCH(add_expert_bias);
  slots.for_rows(call.team, 16, [&](int64_t row, int64_t n) {
    const int64_t expert = row / slots.slots() % slots.experts();
    for (int64_t i = row; i < row + n; ++i) add(call, i * wide, expert * wide, wide);
  });
}

void expert_bias_grad(const KernelCall& call) {
  const tensor::Shape& shape = call.ins[0].shape();
  const FilledSlots slots(call, shape, call.ins[1]);
  const int64_t wide = shape[3].size;
  const auto add = HWY_DYNAMIC_DISPATCH(add_slot_to_sum);
  call.team.for_shares(slots.experts(), 1, [&](base::Range r, int) {
    for (int64_t expert = r.begin; expert < r.end; ++expert) {
      float* sum = reinterpret_cast<float*>(call.outs[0].data) + expert * wide;
      if (!call.accumulates(0)) std::fill_n(sum, wide, 0.0f);
      for (int64_t sample = 0; sample < shape[0].size; ++sample) {
        const int64_t first = (sample * slots.experts() + expert) * slots.slots();
        for (int64_t s = 0; s < slots.filled(sample, expert); ++s) add(call, (first + s) * wide, sum, wide);
      }
    }
  });
}

}  // namespace kintsugi::kernels::cpu
#endif
