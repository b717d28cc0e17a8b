#include <algorithm>

#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/sum_squares.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

template <typename T>
double squares_of(const T* x, int64_t n) {
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  const int64_t N = static_cast<int64_t>(hn::Lanes(wide));
  auto sum = hn::Zero(wide);
  HWY_ALIGN float some[1024];
  for (int64_t i = 0; i < n; i += 1024) {
    const int64_t count = std::min<int64_t>(1024, n - i);
    for (int64_t j = 0; j < count; ++j) some[j] = static_cast<float>(x[i + j]);
    int64_t j = 0;
    for (; j + N <= count; j += N) {
      const auto v = hn::PromoteTo(wide, hn::LoadU(narrow, some + j));
      sum = hn::MulAdd(v, v, sum);
    }
    for (; j < count; ++j)
      sum = hn::Add(sum, hn::Set(wide, static_cast<double>(some[j]) * some[j] / static_cast<double>(N)));
  }
  return hn::GetLane(hn::SumOfLanes(wide, sum));
}

void sum_squares_part(const KernelCall& call, base::Range r) {
  constexpr int64_t kBlock = 1024;
  const int64_t n = call.ins[0].elements();
  double* blocks = reinterpret_cast<double*>(call.outs[0].data);
  for_type(call.ins[0].dtype(), [&]<typename T>(T) {
    const T* x = reinterpret_cast<const T*>(call.ins[0].data);
    for (int64_t i = r.begin; i < r.end; ++i) blocks[i] = squares_of(x + i * kBlock, std::min(kBlock, n - i * kBlock));
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(sum_squares_part);

void sum_squares(const KernelCall& call) {
  const auto part = HWY_DYNAMIC_DISPATCH(sum_squares_part);
  call.team.for_shares(call.outs[0].elements(), 4, [&](base::Range r, int) { part(call, r); });
}

}  // namespace kintsugi::kernels::cpu
#endif
