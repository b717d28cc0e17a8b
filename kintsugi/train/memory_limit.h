// Whether what a rank needs fits into what it may use, and what would make it fit; asked before anything is allocated.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/program/program.h"

namespace kintsugi::train {

// What a rank may use.
struct MemoryLimit {
  int64_t bytes = 0;
  std::string from;  // "[parallel] memory_per_rank", "a half of this machine's 15.5 GiB"
};

// What this machine has, and what the control group of this process allows; 0: not known, no limit.
struct MachineMemory {
  int64_t machine = 0, group = 0;
};
MachineMemory machine_memory();

// The least limit of a control group and of those above it. `root`: where control groups are mounted; `lines`: those of
// /proc/self/cgroup. Reads memory.max (v2) and memory.limit_in_bytes (v1). 0: none.
int64_t group_limit(const std::filesystem::path& root, std::string_view lines);

// [parallel] memory_per_rank, else the smaller of the two, over the ranks on this machine; none where nothing is known.
std::optional<MemoryLimit> memory_limit(const config::Settings& settings, const MachineMemory& machine, int64_t ranks);
std::optional<MemoryLimit> memory_limit(const config::Settings& settings);

// A change of the settings, and the bytes that the rank that needs most then needs less.
struct Change {
  std::vector<std::pair<std::string, std::string>> sets;  // "parallel.zero", "1"
  int64_t saves = 0;
  bool fits = false;
};

// A stage whose ranks need more than they may use.
struct Excess {
  int stage = 0, stages = 1, rank = 0;  // the first rank of the stage
  int64_t bytes = 0;
  MemoryLimit limit;
  std::vector<std::pair<std::string, int64_t>> largest;  // the three largest parts, by name
  std::vector<Change> fitting;     // each alone makes it fit; what costs least work and communication first
  std::optional<Change> together;  // where none does: the first of them that do together
};

// Of the stage that needs most, or of `stage`, where it is over the limit; the changes are found by compiling each.
std::optional<Excess> excess(const config::Settings& settings, const std::vector<program::Program>& stages,
                             const MemoryLimit& limit, int stage = -1);

// "rank 4 (stage 1 of 2) needs ...", and a line for each change; as one line, joined with ";".
std::vector<std::string> describe(const Excess& excess);
std::string one_line(const Excess& excess);

// Asked by all ranks of `all` together: SharedError where one of them has too little memory.
void require_memory(const config::Settings& settings, const std::vector<program::Program>& stages,
                    comm::Communicator& all);

}  // namespace kintsugi::train
