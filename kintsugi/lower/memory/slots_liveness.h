// Which buffers the bodies of a list of calls touch, in which of their instructions and in which calls. Computed once,
// for all ways of planning the list's slots.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/lower/memory/live_ranges.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// A body with all of its variants, which have the same buffers at the same offsets.
struct BodyLiveness {
  int base = 0;                                     // the body that all are variants of
  std::vector<int> calls = {};                      // in the list, of all variants
  bool of_step = false;                             // called for the step as a whole, not for each micro-batch
  bool in_every_micro_batch = false;                // each has a call of it
  bool waits_for_sent = false;                      // it does nothing else: its call may come before or after others
  std::vector<int> lengths = {};                    // by variant: instructions
  std::vector<std::vector<LiveRange>> ranges = {};  // by variant, by buffer
  size_t last = 0;                                  // the variant of the last micro-batch
  std::vector<program::BufferId> temporaries = {};  // those that no other body touches; largest first

  std::vector<LiveRange> live(program::BufferId b) const;  // by variant
  const LiveRange& live_in_last(program::BufferId b) const { return ranges[last][static_cast<size_t>(b)]; }
};

// Buffers touched by the same set of several bodies: they are carried from call to call. Each micro-batch has its own,
// from its first call of these bodies to its last.
struct Carried {
  std::vector<size_t> bodies = {};  // in ListLiveness::bodies, ascending
  int64_t bytes = 0;
  bool of_step = false;                      // the step has them, once
  bool in_every_micro_batch = false;         // each has a call of each of these bodies
  bool waits_for_sent = false;               // one of the bodies does: which call is the last differs
  std::vector<std::vector<int>> calls = {};  // of these bodies, by micro-batch that has them all

  bool begins_with(size_t body) const { return bodies.front() == body; }
  bool ends_with(size_t body) const { return bodies.back() == body && !waits_for_sent; }
};

struct ListLiveness {
  int num_calls = 0;
  std::vector<BodyLiveness> bodies;  // of the last micro-batch and the step, in the order of their calls
  std::vector<Carried> carried;
  std::vector<int> carried_of;  // by buffer: its index in `carried`; -1: it is no root, or only one body touches it
};

ListLiveness liveness_of(const program::Program& p, const program::CallList& list);

// For each buffer, the bodies that touch it: their positions in `bodies`, ascending.
std::vector<std::vector<size_t>> bodies_touching(const program::Program& p, const std::vector<int>& bodies);

// The most bytes live at one time: within a call, with the buffers carried past it. Each call of a body counts as that
// of the last micro-batch, which may have more than others.
int64_t lower_bound(const program::Program& p, const program::CallList& list, const ListLiveness& liveness);

}  // namespace kintsugi::lower
