// Measures the peak rates of the processor and its memory, by number of cores.
#pragma once

#include <functional>
#include <vector>

namespace kintsugi::calibrate {

// Rates of this number of threads, each pinned to a core: operations per second in registers or in L1-resident tiles,
// and bytes per second read and written by a memory copy.
struct CoreRates {
  int cores = 1;
  double fp32 = 0, bf16 = 0, memory = 0;
};

CoreRates measure_rates(int cores);
// Measures 1, 2, 4, ... cores and all cores. Calls progress before each.
std::vector<CoreRates> measure_cores(int all, const std::function<void(int cores)>& progress = {});

}  // namespace kintsugi::calibrate
