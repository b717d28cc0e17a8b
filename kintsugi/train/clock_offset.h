// The clocks of ranks on several machines.
#pragma once

#include <cstdint>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::train {

// Nanoseconds. The clock of this rank plus `offset` is that of rank 0, but for `error` at most.
struct ClockOffset {
  int64_t offset = 0, error = 0;
};

// For profile::now(). Ranks of one process have one clock. Others send a few messages to and fro, of which the fastest
// counts: rank 0 is asked the time halfway through it. Clocks that agree within the error are one. All ranks call
// together.
ClockOffset clock_offset(comm::Communicator& all);

}  // namespace kintsugi::train
