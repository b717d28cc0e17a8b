// Live ranges of arena buffers along a straight list of instructions, and which buffers reuse the memory of others.
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

// The instructions of these bodies, concatenated.
Instructions instructions_of(const program::Program& p, const std::vector<int>& bodies);

// The bodies of the last micro-batch, which touch everything that those of other micro-batches do, and of the step, in
// call order.
std::vector<int> bodies_of_last_micro_batch(const program::CallList& list);

// [buffer], for roots only. Inputs are live from the beginning, outputs until after the last instruction; a value that
// a decoding step adds to a cache is live until the cache is read.
std::vector<LiveRange> live_ranges(const program::Program& p, const Instructions& list);

// Bytes live at each instruction; the maximum is a lower bound of any packing.
std::vector<int64_t> live_bytes(const program::Program& p, const std::vector<LiveRange>& live, size_t length);

// Further conditions on sharing memory, and notification of it; either may be empty.
struct Sharing {
  std::function<bool(program::BufferId from, program::BufferId to)> may = {};
  std::function<void(program::BufferId from, program::BufferId to)> shared = {};
};

// Lets an output reuse the memory of an input whose live range ends there, if the operation's row and `sharing` allow
// it.
void share_in_place(program::Program& p, const Instructions& list, const graph::OpTable& operations,
                    const Sharing& sharing = {});

}  // namespace kintsugi::lower
