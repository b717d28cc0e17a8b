// What the processor and its memory do at most, by cores.
#pragma once

#include <functional>
#include <vector>

namespace kintsugi::calibrate {

// Of so many threads, each bound to a core: operations a second in registers or in tiles of the first level cache, and
// bytes a second that are read and written when memory is copied.
struct CoreRates {
  int cores = 1;
  double fp32 = 0, bf16 = 0, memory = 0;
};

CoreRates measure_rates(int cores);
// Of 1, 2, 4, ... cores, and of all. progress: before each.
std::vector<CoreRates> measure_cores(int all, const std::function<void(int cores)>& progress = {});

}  // namespace kintsugi::calibrate
