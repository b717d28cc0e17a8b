// How a body uses the buffers of the arena: from which instruction to which, and while which communication.
#pragma once

#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// Instructions of a body, both inclusive.
struct InstructionRange {
  int begin = 0, end = 0;
};

// One root in one body.
struct ArenaUse {
  BufferId root = kNoBuffer;
  InstructionRange touched = {};
  // From the start of a collective or message on it to the wait for it, as far as both are in the body, and from the
  // beginning of the body to the wait for a copy; merged and ascending.
  std::vector<InstructionRange> in_transit = {};
  bool awaits = false;  // waits for a copy, or for a message that an earlier call started
  int num_started = 0;  // messages that it leaves open for a later call, minus those that it waits for as above
  bool workspace = false;
  bool computed = false, read = false;  // written, read by kernels
  bool received = false, sent = false;  // written, read by collectives, messages and copies
};

// In the order in which the body touches them.
std::vector<ArenaUse> arena_uses(const Program& p, const Body& body);

}  // namespace kintsugi::program
