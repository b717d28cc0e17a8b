#include "kintsugi/calibrate/measure_machine.h"

#include <algorithm>
#include <cstdint>

#include "kintsugi/base/bind.h"
#include "kintsugi/base/start_thread.h"
#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/host/bandwidth.h"
#include "kintsugi/kernels/host/peak.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::calibrate {
namespace {

constexpr int64_t kCopied = int64_t{128} << 20;  // bytes; larger than the caches of a core

}  // namespace

// Runs on a separate thread, since affinity persists.
CoreRates measure_rates(int cores) {
  CoreRates rates = {.cores = cores};
  base::start_thread([&] {
    base::ThreadTeam team(cores);
    const std::vector<int> numbers = base::cores_of_process();
    team.run([&](int t) {
      if (static_cast<size_t>(t) < numbers.size()) base::bind_thread(numbers[static_cast<size_t>(t)]);
    });
    rates.fp32 = kernels::host::measure_peak_flops(team, tensor::DType::f32);
    rates.bf16 = kernels::host::measure_peak_flops(team, tensor::DType::bf16);
    rates.memory = kernels::host::measure_memory_bandwidth(team, kCopied);
  }).join();
  return rates;
}

std::vector<CoreRates> measure_cores(int all, const std::function<void(int)>& progress) {
  std::vector<CoreRates> list;
  for (int cores = 1;; cores = std::min(2 * cores, all)) {
    if (progress) progress(cores);
    list.push_back(measure_rates(cores));
    if (cores >= all) return list;
  }
}

}  // namespace kintsugi::calibrate
