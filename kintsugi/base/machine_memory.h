// The memory of this machine, and the limit of this process's control group.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace kintsugi::base {

// In bytes; 0: unknown, or no limit.
struct MachineMemory {
  int64_t machine = 0;
  int64_t group = 0;
};

MachineMemory machine_memory();

// The lowest limit of a control group and its ancestors, 0 if none. `root`: mount point of control groups; `lines`:
// contents of /proc/self/cgroup. Reads memory.max (v2) and memory.limit_in_bytes (v1).
int64_t group_limit(const std::filesystem::path& root, std::string_view lines);

}  // namespace kintsugi::base
