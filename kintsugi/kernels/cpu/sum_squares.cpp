#include <algorithm>
#include <type_traits>

#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/sum_squares.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

namespace {
struct Copy {
  HWY_INLINE V operator()(V x) const { return x; }
};
constexpr int64_t kBlock = 1024;
}  // namespace

// In fp64: four vector accumulators, then the remainder one by one.
inline double squares_of(const float* x, int64_t n) {
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  const auto N = static_cast<int64_t>(hn::Lanes(wide));
  auto sum0 = hn::Zero(wide), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  const auto plus = [&](const float* from, auto sum) HWY_ATTR {
    const auto v = hn::PromoteTo(wide, hn::LoadU(narrow, from));
    return hn::MulAdd(v, v, sum);
  };
  int64_t i = 0;
  for (; i + 4 * N <= n; i += 4 * N) {
    sum0 = plus(x + i, sum0), sum1 = plus(x + i + N, sum1);
    sum2 = plus(x + i + 2 * N, sum2), sum3 = plus(x + i + 3 * N, sum3);
  }
  double sum = hn::GetLane(hn::SumOfLanes(wide, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
  for (; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

void sum_squares_part(const tensor::View& g, const tensor::View& to, base::Range r) {
  const int64_t n = g.elements();
  double* blocks = reinterpret_cast<double*>(to.data);
  for_type(g.dtype(), [&]<typename T>(T) {
    const T* x = reinterpret_cast<const T*>(g.data);
    HWY_ALIGN float some[kBlock];
    for (int64_t i = r.begin; i < r.end; ++i) {
      const T* from = x + i * kBlock;
      const int64_t count = std::min(kBlock, n - i * kBlock);
      if constexpr (std::is_same_v<T, float>) {
        blocks[i] = squares_of(from, count);
      } else {
        map(Copy(), count, some, from);
        blocks[i] = squares_of(some, count);
      }
    }
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(sum_squares_part);

void sum_squares(const KernelCall& call) {
  const auto part = HWY_DYNAMIC_DISPATCH(sum_squares_part);
  for (size_t i = 0; i < call.ins.size(); ++i)
    call.team.for_shares(call.outs[i].elements(), 4, [&](base::Range r, int) { part(call.ins[i], call.outs[i], r); });
}

}  // namespace kintsugi::kernels::cpu
#endif
