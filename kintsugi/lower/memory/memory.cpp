#include "kintsugi/lower/memory/memory.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/lower/memory/live_ranges.h"
#include "kintsugi/lower/memory/pack.h"
#include "kintsugi/lower/memory/slots.h"
#include "kintsugi/program/ordered_sums.h"
#include "kintsugi/program/staging.h"

namespace kintsugi::lower {

using program::BufferId;
using program::CallList;
using program::kNoBuffer;
using program::Program;
using program::Region;

namespace {

// Consecutively, by kind.
void plan_states(Program& p) {
  for (program::StateKind kind : tensor::kStateKinds)
    for (const program::StateInfo& s : p.states) {
      if (s.kind != kind || p.buffer(s.buffer).offset >= 0) continue;  // its bucket has been placed
      if (p.buffer(s.buffer).region != Region::state) continue;
      p.buffer(s.buffer).offset = p.state_bytes;
      p.state_bytes += p.aligned(p.buffer(s.buffer).bytes());
    }
}

// Consecutively, each with all of its copies.
void plan_file(Program& p) {
  for (program::Buffer& b : p.buffers) {
    if (b.region != Region::file || b.same_as != kNoBuffer) continue;
    b.offset = p.file_bytes;
    p.file_bytes += std::max<int64_t>(1, b.copies) * program::whole_pages(b.bytes());
  }
}

// Without overlap of micro-batches: all use the same buffers, so that the last one and the step exhibit every conflict.
void plan_one_by_one(Program& p, CallList& list, const graph::OpTable& operations) {
  const Instructions all = instructions_of(p, bodies_of_last_micro_batch(list));
  share_in_place(p, all, operations);
  const std::vector<LiveRange> live = live_ranges(p, all);
  std::vector<Item> items;
  std::vector<program::Buffer*> buffers;  // per item
  for (size_t b = 0; b < live.size(); ++b) {
    if (live[b].empty()) continue;
    items.push_back({p.aligned(p.buffers[b].bytes()), {{live[b].begin, live[b].end}}});
    buffers.push_back(&p.buffers[b]);
  }
  const Packing packing = pack(items);
  for (size_t i = 0; i < items.size(); ++i) buffers[i]->offset = packing.offsets[i];
  list.arena_bytes = packing.bytes;
  list.lower_bound_bytes = packing.lower_bound;
  list.slots = {{}};
}

}  // namespace

void plan_memory(Program& p, const graph::OpTable& operations, int64_t enough) {
  plan_states(p);
  plan_file(p);
  if (p.on_device)
    for (const CallList& list : p.lists) p.staged_bytes = std::max(p.staged_bytes, program::staging(p, list).bytes);
  if (p.on_device && p.sums_in_rank_order) p.sums_bytes = program::ordered_sums(p).bytes;
  const int64_t enough_in_arena = enough - p.bytes();  // remaining for the arena
  for (size_t i = 0; i < p.lists.size(); ++i) {
    if (interleaves(p.lists[i])) {
      plan_slots(p, i, operations, enough_in_arena);
    } else {
      plan_one_by_one(p, p.lists[i], operations);
    }
    p.arena_bytes = std::max(p.arena_bytes, p.lists[i].arena_bytes);
  }
  for (const program::Buffer& b : p.buffers)
    base::require(b.same_as != kNoBuffer || b.offset >= 0 || b.region == Region::arena, "memory",
                  "\"{}\" has no offset", b.name);
}

}  // namespace kintsugi::lower
