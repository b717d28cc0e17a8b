#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/rms_norm.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

// Calls f with the map from gamma to the factor of the call.
template <typename F>
void for_gamma(const KernelCall& call, const F& f) {
  if (!call.attributes.has("gamma_offset")) return f(PlainGamma());
  f(OffsetGamma{static_cast<float>(call.attributes.number("gamma_offset"))});
}

void rms_norm_rows(const KernelCall& call, const NormSizes& s, base::Range r) {
  for_gamma(call, [&](auto of) { norm_rows<false>(call, s, r, of); });
}
void rms_norm_grad_rows(const KernelCall& call, const NormSizes& s, NormRow* statistics, base::Range r) {
  for_gamma(call, [&](auto of) { norm_grad_rows<false>(call, s, statistics, r, of); });
}
void rms_norm_grad_columns(const KernelCall& call, const NormSizes& s, const NormRow* statistics, base::Range r) {
  norm_grad_columns<false>(call, s, statistics, r);
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(rms_norm_rows);
HWY_EXPORT(rms_norm_grad_rows);
HWY_EXPORT(rms_norm_grad_columns);

void rms_norm(const KernelCall& call) {
  const NormSizes s = norm_sizes(call);
  const auto rows = HWY_DYNAMIC_DISPATCH(rms_norm_rows);
  call.team.for_shares(s.rows, 4, [&](base::Range r, int) { rows(call, s, r); });
}

void rms_norm_grad(const KernelCall& call) {
  const NormSizes s = norm_sizes(call);
  NormRow* statistics = Scratch(call.workspace).take<NormRow>(s.rows);
  const auto rows = HWY_DYNAMIC_DISPATCH(rms_norm_grad_rows);
  call.team.for_shares(s.rows, 4, [&](base::Range r, int) { rows(call, s, statistics, r); });
  const auto columns = HWY_DYNAMIC_DISPATCH(rms_norm_grad_columns);
  call.team.for_shares(s.width, 16, [&](base::Range r, int) { columns(call, s, statistics, r); });
}

}  // namespace kintsugi::kernels::cpu
#endif
