// Checks whether the memory of a rank fits its limit, and finds changes that would make it fit, before anything is
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

// The machine that the ranks of a run share.
struct Machine {
  base::MachineMemory memory = {};
  int64_t processes = 0;  // of the run on this machine; 0: its ranks are threads of one process
  // Free and total memory of the device on which the ranks of a process compute; 0: they compute on the host.
  int64_t device_free = 0, device = 0;
};

// The memory that a rank may use, and the origin of that limit.
struct MemoryLimit {
  enum class Source { memory_per_rank, machine, control_group, device };
  int64_t bytes = 0;
  Source source = Source::memory_per_rank;
  int64_t shared = 0;  // total of the machine, control group or device
  int64_t ranks = 1;   // number of ranks that share it
  int64_t of = 0;      // if others use part of the device: all of its memory
};

// [parallel] memory_per_rank, or else the device's free memory, or the smaller of the machine's memory and the control
// group's limit, divided by the ranks that share it; nothing if unknown, as for a device of another machine.
std::optional<MemoryLimit> memory_limit(const config::Settings& settings, const Machine& machine);

// A change of the settings with which all ranks fit, and by how many bytes it reduces the largest need of a rank.
struct Saving {
  plan::Sets sets;
  int64_t bytes = 0;
};

// A stage whose ranks need more memory than they may use.
struct Excess {
  int stage = 0, stages = 1, rank = 0;  // rank: the first of the stage
  int64_t bytes = 0;
  MemoryLimit limit = {};
  std::vector<std::pair<std::string, int64_t>> largest = {};  // the three largest parts, by name
  std::vector<Saving> fitting = {};     // each suffices alone; least extra computation and communication first
  std::optional<Saving> together = {};  // if none does: a minimal combination, in that order
  int64_t not_tried = 0;                // changes that were not tried because the search ran out of time
};

// The search for changes that make a program fit. It compiles with each change, which takes as long as compiling
// without.
struct Search {
  // Called before each change with the number tried and the total; may be empty.
  std::function<void(int64_t done, int64_t all)> trying = {};
  double seconds = 30;               // time limit by the clock; a compilation ends after the pass that exceeds it
  std::function<double()> now = {};  // a clock in seconds; empty: the monotonic one
};

// For the stage that needs the most, or for `stage`, if it exceeds the limit.
std::optional<Excess> excess(const config::Settings& settings, const std::vector<program::Program>& stages,
                             const Machine& machine, int stage = -1, const Search& search = {});

// "rank 4 (stage 1 of 2) needs ...", and one line per change; one_line() joins them with ";".
std::vector<std::string> describe(const Excess& excess);
std::string one_line(const Excess& excess);

}  // namespace kintsugi::compile
