// The processor that this process runs on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::base {

struct Processor {
  std::string name;                // "" if the system does not say
  std::vector<std::string> units;  // of those that kernels care for: "avx2", "fma", "avx512f", "amx_bf16", "neon", ...
};

// Reads the system's description (Linux: /proc/cpuinfo). Nothing is found where there is none.
Processor this_processor();
Processor parse_cpuinfo(std::string_view cpuinfo);

// The cores that this process may use: those of its affinity, and no more than the quota of its control group. At
// least 1.
int64_t usable_cores();
// The cores that the quota in a cgroup v2 `cpu.max` ("150000 100000") amounts to, rounded up; 0 if it sets no limit.
int64_t parse_cpu_quota(std::string_view cpu_max);

}  // namespace kintsugi::base
