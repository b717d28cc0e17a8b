// The processor that this process runs on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::base {

struct Processor {
  std::string name;                // "" if the system does not say
  std::vector<std::string> units;  // those that kernels use: "avx2", "fma", "avx512f", "amx_bf16", "neon", ...
};

// Reads the system's description (Linux: /proc/cpuinfo). If there is none, all fields are empty.
Processor this_processor();
Processor parse_cpuinfo(std::string_view cpuinfo);

// The number of cores that this process may use: those of its affinity mask, limited by the quota of its control
// group. At least 1.
int64_t usable_cores();
// The quota in a cgroup v2 `cpu.max` ("150000 100000") in cores, rounded up; 0 if it sets no limit.
int64_t parse_cpu_quota(std::string_view cpu_max);

}  // namespace kintsugi::base
