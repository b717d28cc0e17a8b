// The memory of this machine, and the limit that the control group of this process sets.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace kintsugi::base {

// In bytes; 0: not known, or no limit.
struct MachineMemory {
  int64_t machine = 0;
  int64_t group = 0;
};

MachineMemory machine_memory();

// The lowest limit of a control group and its ancestors. `root`: where control groups are mounted; `lines`: those of
// /proc/self/cgroup. Reads memory.max (v2) and memory.limit_in_bytes (v1). 0: none.
int64_t group_limit(const std::filesystem::path& root, std::string_view lines);

}  // namespace kintsugi::base
