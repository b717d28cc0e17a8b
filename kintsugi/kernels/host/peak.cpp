#include "kintsugi/kernels/host/peak.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <vector>

#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/host/peak.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::host::HWY_NAMESPACE {
using namespace kernels::cpu::HWY_NAMESPACE;

// Twelve independent chains of multiply-add, enough to hide their latency on all processors. Returns the sum so that
// the work is not optimized away. Operations: rounds * 12 * 2 * lanes.
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

}  // namespace kintsugi::kernels::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::host {

using cpu::kStep;
using cpu::kTile;

HWY_EXPORT(chains);
HWY_EXPORT(target_bit);

namespace {

// The best of many short runs of a thread, each of which returns its operations: other programs disturb some of them,
// and not all threads at once.
template <typename F>
double best_rate(const F& run) {
  using Clock = std::chrono::steady_clock;
  constexpr int kMostRuns = 20'000;  // if the clock stops or goes backwards
  double best = 0;
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i == 0 || (i < kMostRuns && Clock::now() - begin < std::chrono::milliseconds(50)); ++i) {
    const Clock::time_point start = Clock::now();
    const int64_t operations = run();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds > 0) best = std::max(best, static_cast<double>(operations) / seconds);
  }
  return best;
}

// The sum over concurrent threads.
template <typename F>
double rate_of_all(base::ThreadTeam& team, const F& rate_of_thread) {
  std::vector<double> rates(static_cast<size_t>(team.size()), 0.0);
  team.run([&](int thread) { rates[static_cast<size_t>(thread)] = rate_of_thread(); });
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

double measure_fp32(base::ThreadTeam& team) {
  const auto run = HWY_DYNAMIC_DISPATCH(chains);
  std::atomic<float> sink{0};
  return rate_of_all(team, [&] {
    return best_rate([&] {
      int64_t operations = 0;
      sink = run(50000, &operations);
      return operations;
    });
  });
}

// Operands and result of a tile. With half of the steps these are 28 KiB, which fits into every L1 cache; with all of
// them 52 KiB, and a smaller fraction of the time goes to the result.
struct Tiles {
  static constexpr int64_t kSteps = 12, kPanel = kSteps * kTile * kStep;
  alignas(64) std::array<tensor::bf16, kPanel> a, b;
  alignas(64) std::array<float, kTile * kTile> c;

  Tiles() {
    for (int64_t i = 0; i < kPanel; ++i) {
      const auto x = static_cast<float>(i * 37 % 64) / 64 - 0.5f;
      a[static_cast<size_t>(i)] = tensor::bf16(x), b[static_cast<size_t>(i)] = tensor::bf16(-x);
    }
  }
};

}  // namespace

double measure_peak_flops(base::ThreadTeam& team, const cpu::Bf16Unit& unit) {
  return rate_of_all(team, [&] {
    const auto tiles = std::make_unique<Tiles>();
    cpu::Bf16Tile t = {.a = tiles->a.data(),
                       .a_row = kStep,
                       .a_step = kTile * kStep,
                       .b = tiles->b.data(),
                       .c = tiles->c.data(),
                       .c_row = kTile};
    unit.begin();
    const double rate = best_rate([&] {
      constexpr int64_t kTimes = 200;
      t.steps = t.steps == Tiles::kSteps ? Tiles::kSteps / 2 : Tiles::kSteps;  // in turns
      for (int64_t i = 0; i < kTimes; ++i) unit.multiply(t);
      return kTimes * 2 * kTile * kTile * kStep * t.steps;
    });
    unit.end();
    return rate;
  });
}

double measure_peak_flops(base::ThreadTeam& team, tensor::DType dtype) {
  return dtype == tensor::DType::bf16 ? measure_peak_flops(team, cpu::bf16_unit()) : measure_fp32(team);
}

std::string simd_target() {
  return hwy::TargetName(HWY_DYNAMIC_DISPATCH(target_bit)());
}

std::string_view bf16_unit_name() {
  return cpu::bf16_unit().name;
}

}  // namespace kintsugi::kernels::host
#endif
