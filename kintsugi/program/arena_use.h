// How a body uses the buffers of the arena: in which range of instructions, and during which communication.
#pragma once

#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// A range of instructions of a body, inclusive.
struct InstructionRange {
  int begin = 0, end = 0;
};

// The use of one root by one body.
struct ArenaUse {
  BufferId root = kNoBuffer;
  InstructionRange touched = {};
  // Ranges from the start of a collective or message on it to the wait for it, as far as both are in the body, and from
  // the beginning of the body to the wait for a copy; merged, ascending.
  std::vector<InstructionRange> in_transit = {};
  bool awaits = false;  // waits for a copy, or for a message started by an earlier call
  int num_started = 0;  // messages left in flight for a later call, minus those counted in `awaits`
  bool workspace = false;
  bool computed = false, read = false;  // written, read by kernels
  bool received = false, sent = false;  // written, read by collectives, messages and copies
};

// In the order in which the body first touches them.
std::vector<ArenaUse> arena_uses(const Program& p, const Body& body);

}  // namespace kintsugi::program
