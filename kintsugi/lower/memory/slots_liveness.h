// Which buffers the bodies of a list of calls touch, in which instructions and calls. Computed once, and used by all
// ways of planning the list's slots.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/lower/memory/live_ranges.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// A body with all of its variants, which have the same buffers at the same offsets.
struct BodyLiveness {
  int base = 0;                                     // the body they are variants of
  std::vector<int> calls = {};                      // indices in the list, over all variants
  bool of_step = false;                             // called for the whole step, not per micro-batch
  bool in_every_micro_batch = false;                // every micro-batch has a call of it
  bool waits_for_sent = false;                      // does nothing else: its call may come before or after others
  std::vector<int> lengths = {};                    // [variant]: number of instructions
  std::vector<std::vector<LiveRange>> ranges = {};  // [variant][buffer]
  size_t last = 0;                                  // variant of the last micro-batch
  std::vector<program::BufferId> temporaries = {};  // buffers that no other body touches; largest first

  std::vector<LiveRange> live(program::BufferId b) const;  // [variant]
  const LiveRange& live_in_last(program::BufferId b) const { return ranges[last][static_cast<size_t>(b)]; }
};

// Buffers touched by the same set of several bodies, and thus carried from call to call. Each micro-batch has its own,
// from its first call of these bodies to its last.
struct Carried {
  std::vector<size_t> bodies = {};  // indices into ListLiveness::bodies, ascending
  int64_t bytes = 0;
  bool of_step = false;                      // one per step
  bool in_every_micro_batch = false;         // every micro-batch has a call of each of these bodies
  bool waits_for_sent = false;               // one of the bodies does: the last call varies
  std::vector<std::vector<int>> calls = {};  // [micro-batch that has all of them]: calls of these bodies

  bool begins_with(size_t body) const { return bodies.front() == body; }
  bool ends_with(size_t body) const { return bodies.back() == body && !waits_for_sent; }
};

struct ListLiveness {
  int num_calls = 0;
  std::vector<BodyLiveness> bodies;  // of the last micro-batch and the step, in call order
  std::vector<Carried> carried;
  std::vector<int> carried_of;  // [buffer]: index into `carried`; -1: not a root, or touched by only one body
};

ListLiveness liveness_of(const program::Program& p, const program::CallList& list);

// [buffer]: the bodies that touch it, as ascending indices into `bodies`.
std::vector<std::vector<size_t>> bodies_touching(const program::Program& p, const std::vector<int>& bodies);

// Maximum bytes live at one time: within a call, plus the buffers carried past it. Each call of a body counts like the
// last micro-batch's, which may have more than others.
int64_t lower_bound(const program::Program& p, const program::CallList& list, const ListLiveness& liveness);

}  // namespace kintsugi::lower
