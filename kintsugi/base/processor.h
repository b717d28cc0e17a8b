// The processor that this process runs on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::base {

struct Processor {
  std::string name;  // "" if unknown
  std::vector<std::string>
      units;  // instruction sets that kernels use: "avx2", "fma", "avx512f", "amx_bf16", "neon", ...
};

// Reads the system's description (Linux: /proc/cpuinfo). If there is none, all fields are empty.
Processor this_processor();
Processor parse_cpuinfo(std::string_view cpuinfo);

// The number of cores that this process may use, by its affinity mask and the quota of its control group; at least 1.
int64_t usable_cores();
// The quota in a cgroup v2 `cpu.max` ("150000 100000") in cores, rounded up; 0 if there is no limit.
int64_t parse_cpu_quota(std::string_view cpu_max);

}  // namespace kintsugi::base
