#include <algorithm>

#include "kintsugi/kernels/cpu/broadcast_layout.h"
#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/sum.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/columns-inl.h"

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

// `sums`: the output itself, or fp32 memory if the output is narrower.
void sum_part(const KernelCall& call, float* sums, int64_t rows, int64_t columns, base::Range mine) {
  const bool narrow = call.outs[0].dtype() != tensor::DType::f32;
  for_type(call.ins[0].dtype(), [&]<typename T>(T) {
    const T* x = reinterpret_cast<const T*>(call.ins[0].data);
    add_columns(
        rows, mine, call.accumulates(0) && !narrow, sums,
        [&](int64_t row, int64_t column) HWY_ATTR { return load(x + row * columns + column); },
        [&](int64_t row, int64_t column) { return static_cast<float>(x[row * columns + column]); });
  });
  if (!narrow) return;
  for_type(call.outs[0].dtype(), [&]<typename T>(T) {
    T* y = reinterpret_cast<T*>(call.outs[0].data) + mine.begin;
    if (call.accumulates(0)) {
      map(Add(), mine.size(), y, y, sums + mine.begin);
    } else {
      map(Copy(), mine.size(), y, sums + mine.begin);
    }
  });
}

// Full reduction: 1,024 elements at a time, in order.
float sum_all(const KernelCall& call) {
  double total = 0;
  const int64_t n = call.ins[0].elements();
  for_type(call.ins[0].dtype(), [&]<typename T>(T) {
    const T* x = reinterpret_cast<const T*>(call.ins[0].data);
    for (int64_t begin = 0; begin < n; begin += 1024) {
      const int64_t end = std::min(n, begin + 1024);
      float sum = 0;
      for (int64_t i = begin; i < end; ++i) sum += static_cast<float>(x[i]);
      total += static_cast<double>(sum);
    }
  });
  return static_cast<float>(total);
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(sum_part);
HWY_EXPORT(sum_all);

bool sum_takes(const Operands& o) {
  return is_fast(o.ins[0].dtype) && is_fast(o.outs[0].dtype) && repeats(o.outs[0].shape, o.ins[0].shape);
}

int64_t sum_workspace(const KernelShapes& shapes) {
  return shapes.outs[0]->dtype == tensor::DType::f32
             ? 0
             : shapes.outs[0]->shape.elements() * static_cast<int64_t>(sizeof(float));
}

void sum(const KernelCall& call) {
  const int64_t columns = call.outs[0].elements();
  const bool narrow = call.outs[0].dtype() != tensor::DType::f32;
  if (columns == 1 && !narrow) {
    float& y = *reinterpret_cast<float*>(call.outs[0].data);
    const float x = HWY_DYNAMIC_DISPATCH(sum_all)(call);
    y = call.accumulates(0) ? y + x : x;
    return;
  }
  const int64_t rows = columns == 0 ? 0 : call.ins[0].elements() / columns;
  float* sums = reinterpret_cast<float*>(narrow ? call.workspace.data() : call.outs[0].data);
  const auto part = HWY_DYNAMIC_DISPATCH(sum_part);
  call.team.for_shares(columns, 16, [&](base::Range r, int) { part(call, sums, rows, columns, r); });
}

}  // namespace kintsugi::kernels::cpu
#endif
