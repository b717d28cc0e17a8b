// Whether the memory that a rank needs fits its limit, and which changes would make it fit; known before anything is
// allocated.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kintsugi/base/machine_memory.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/plan/changes.h"
#include "kintsugi/program/program.h"

namespace kintsugi::compile {

// What the ranks of a run share.
struct Machine {
  base::MachineMemory memory = {};
  int64_t processes = 0;  // of the run on this machine; 0: its ranks are threads of one
  // Of the device on which the ranks of a process compute: what is free of what it has. 0: they compute on the host.
  int64_t device_free = 0, device = 0;
};

// The memory that a rank may use, and where that limit comes from.
struct MemoryLimit {
  enum class Source { memory_per_rank, machine, control_group, device };
  int64_t bytes = 0;
  Source source = Source::memory_per_rank;
  int64_t shared = 0;  // of the machine, the control group or the device
  int64_t ranks = 1;   // that share it
  int64_t of = 0;      // of a device of which others have a part: all of its memory
};

// [parallel] memory_per_rank, or else what is free of the device, or the smaller of the machine's memory and the
// control group's limit, divided by the ranks that share it; none if that is not known, as of a card that is not here.
std::optional<MemoryLimit> memory_limit(const config::Settings& settings, const Machine& machine);

// A change of the settings with which all ranks fit, and by how many bytes it reduces the largest need of a rank.
struct Saving {
  plan::Sets sets;
  int64_t bytes = 0;
};

// A stage whose ranks need more memory than they may use.
struct Excess {
  int stage = 0, stages = 1, rank = 0;  // the first rank of the stage
  int64_t bytes = 0;
  MemoryLimit limit = {};
  std::vector<std::pair<std::string, int64_t>> largest = {};  // the three largest parts, by name
  std::vector<Saving> fitting = {};     // each alone is enough; the cheapest in work and communication first
  std::optional<Saving> together = {};  // if none is: the first of them that are enough together
  int64_t not_tried = 0;                // changes for which the time was not enough
};

// For the stage that needs most, or `stage`, if it is over the limit; the changes are found by compiling with each, and
// `trying` is told before each how many have been tried, of how many.
// Compiling with a change takes as long as without; what would go beyond `seconds` is not tried.
using Trying = std::function<void(int64_t done, int64_t all)>;
inline constexpr double kSecondsOfChanges = 30;
std::optional<Excess> excess(const config::Settings& settings, const std::vector<program::Program>& stages,
                             const Machine& machine, int stage = -1, const Trying& trying = {},
                             double seconds = kSecondsOfChanges);

// "rank 4 (stage 1 of 2) needs ...", and one line for each change; the second form joins them to one line with ";".
std::vector<std::string> describe(const Excess& excess);
std::string one_line(const Excess& excess);

}  // namespace kintsugi::compile
