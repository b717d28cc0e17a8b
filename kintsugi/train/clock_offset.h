// Synchronizes the clocks of ranks on several machines.
#pragma once

#include <cstdint>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::train {

// In nanoseconds: the clock of this rank plus `offset` equals that of rank 0 up to `error`.
struct ClockOffset {
  int64_t offset = 0, error = 0;
};

// For profile::now(). Ranks of one process share a clock. Others exchange a few messages, of which the fastest counts:
// rank 0's time is taken halfway through it. Offsets within the error are treated as zero. Collective.
ClockOffset clock_offset(comm::Communicator& all);

}  // namespace kintsugi::train
