#include "kintsugi/kernels/cpu/peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <vector>

#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/peak.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

// Twelve independent chains of multiply-add, as many as hide their latency everywhere. The sum is returned so that the
// work is not optimized away. Operations: rounds * 12 * 2 * lanes.
float chains(int64_t rounds, int64_t* operations) {
  const V x = set(0.999f), y = set(0.001f);
  V a = set(1), b = set(2), c = set(3), d = set(4), e = set(5), f = set(6);
  V g = set(7), h = set(8), i = set(9), j = set(10), k = set(11), l = set(12);
  for (int64_t r = 0; r < rounds; ++r) {
    a = hn::MulAdd(a, x, y), b = hn::MulAdd(b, x, y), c = hn::MulAdd(c, x, y), d = hn::MulAdd(d, x, y);
    e = hn::MulAdd(e, x, y), f = hn::MulAdd(f, x, y), g = hn::MulAdd(g, x, y), h = hn::MulAdd(h, x, y);
    i = hn::MulAdd(i, x, y), j = hn::MulAdd(j, x, y), k = hn::MulAdd(k, x, y), l = hn::MulAdd(l, x, y);
  }
  *operations = rounds * 12 * 2 * lanes();
  const V sum = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, d)), hn::Add(hn::Add(e, f), hn::Add(g, h)));
  return sum_of_lanes(hn::Add(sum, hn::Add(hn::Add(i, j), hn::Add(k, l))));
}

int64_t target_bit() {
  return HWY_TARGET;
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(chains);
HWY_EXPORT(target_bit);

double measure_peak_flops(base::ThreadTeam& team) {
  using Clock = std::chrono::steady_clock;
  const auto run = HWY_DYNAMIC_DISPATCH(chains);
  // Each thread's best of many short runs: other programs on the machine disturb some of them, and not all threads at
  // the same time.
  std::vector<double> best(static_cast<size_t>(team.size()), 0.0);
  std::atomic<float> sink{0};
  team.run([&](int thread) {
    const Clock::time_point begin = Clock::now();
    do {
      int64_t operations = 0;
      const Clock::time_point start = Clock::now();
      sink = run(50000, &operations);
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      double& mine = best[static_cast<size_t>(thread)];
      mine = std::max(mine, static_cast<double>(operations) / seconds);
    } while (Clock::now() - begin < std::chrono::milliseconds(50));
  });
  return std::accumulate(best.begin(), best.end(), 0.0);
}

std::string simd_target() {
  return hwy::TargetName(HWY_DYNAMIC_DISPATCH(target_bit)());
}

}  // namespace kintsugi::kernels::cpu
#endif
