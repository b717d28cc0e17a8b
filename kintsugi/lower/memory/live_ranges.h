// The live ranges of buffers of the arena, along a straight list of instructions; and which of them reuse the memory
// of another.
#pragma once

#include <functional>
#include <vector>

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// From the first to the last instruction that touches a buffer or a view of it; empty if none does.
struct LiveRange {
  int begin = 1 << 30;
  int end = -1;

  bool empty() const { return end < 0; }
  bool overlaps(const LiveRange& other) const { return begin <= other.end && other.begin <= end; }
};

using Instructions = std::vector<const program::Instruction*>;

// Of these bodies, one after another.
Instructions instructions_of(const program::Program& p, const std::vector<int>& bodies);

// The bodies of the last micro-batch, which touch all that those of other micro-batches do, and of the step; in the
// order of their calls.
std::vector<int> bodies_of_last_micro_batch(const program::CallList& list);

// By buffer, of roots alone. An input is live from the beginning, an output until after the last instruction; what one
// position adds to a cache, until the cache is read.
std::vector<LiveRange> live_ranges(const program::Program& p, const Instructions& list);

// The sum of bytes that are live at each instruction: no packing is smaller than the largest.
std::vector<int64_t> live_bytes(const program::Program& p, const std::vector<LiveRange>& live, size_t length);

// What else decides of the memory of an output, and learns of it; either may be absent.
struct Sharing {
  std::function<bool(program::BufferId from, program::BufferId to)> may = {};
  std::function<void(program::BufferId from, program::BufferId to)> shared = {};
};

// Gives an output the memory of an input whose live range ends there, if the operation's row and `sharing` allow it.
void share_in_place(program::Program& p, const Instructions& list, const graph::OpTable& operations,
                    const Sharing& sharing = {});

}  // namespace kintsugi::lower
