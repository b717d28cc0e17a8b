#include <algorithm>

#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/layer_norm.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

void layer_norm_rows(const KernelCall& call, const NormSizes& s, base::Range r) {
  norm_rows<true>(call, s, r);
}
void layer_norm_grad_rows(const KernelCall& call, const NormSizes& s, NormRow* statistics, base::Range r) {
  norm_grad_rows<true>(call, s, statistics, r);
}
void layer_norm_grad_columns(const KernelCall& call, const NormSizes& s, const NormRow* statistics, base::Range r) {
  norm_grad_columns<true>(call, s, statistics, r);
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(layer_norm_rows);
HWY_EXPORT(layer_norm_grad_rows);
HWY_EXPORT(layer_norm_grad_columns);

void layer_norm(const KernelCall& call) {
  const NormSizes s = norm_sizes(call);
  const auto rows = HWY_DYNAMIC_DISPATCH(layer_norm_rows);
  call.team.for_shares(s.rows, 4, [&](base::Range r, int) { rows(call, s, r); });
}

void layer_norm_grad(const KernelCall& call) {
  const NormSizes s = norm_sizes(call);
  NormRow* statistics = Scratch(call.workspace).take<NormRow>(s.rows);
  const auto rows = HWY_DYNAMIC_DISPATCH(layer_norm_grad_rows);
  call.team.for_shares(s.rows, 4, [&](base::Range r, int) { rows(call, s, statistics, r); });
  const auto columns = HWY_DYNAMIC_DISPATCH(layer_norm_grad_columns);
  call.team.for_shares(s.width, 16, [&](base::Range r, int) { columns(call, s, statistics, r); });
}

int64_t norm_grad_workspace(const KernelShapes& shapes) {
  Scratch scratch;
  const int64_t width = shapes.ins[NormGradIn::kGamma]->shape.elements();
  scratch.take<NormRow>(shapes.ins[NormGradIn::kX]->shape.elements() / std::max<int64_t>(width, 1));
  return scratch.bytes();
}

}  // namespace kintsugi::kernels::cpu
#endif
