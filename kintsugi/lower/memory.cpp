#include "kintsugi/lower/memory.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/lower/lives.h"
#include "kintsugi/lower/pack.h"
#include "kintsugi/lower/slots.h"

namespace kintsugi::lower {

using program::aligned;
using program::BufferId;
using program::CallList;
using program::kNoBuffer;
using program::Program;
using program::Region;

namespace {

void place_states(Program& p) {
  for (program::StateKind kind : tensor::kStateKinds)
    for (const program::StateInfo& s : p.states) {
      if (s.kind != kind || p.buffer(s.buffer).offset >= 0) continue;  // of a bucket placed already
      if (p.buffer(s.buffer).region == Region::file) continue;
      p.buffer(s.buffer).offset = p.state_bytes;
      p.state_bytes += aligned(p.buffer(s.buffer).bytes());
    }
}

// One behind another.
void place_in_file(Program& p) {
  for (program::Buffer& b : p.buffers) {
    if (b.region != Region::file || b.same_as != kNoBuffer) continue;
    b.offset = p.file_bytes;
    p.file_bytes += std::max<int64_t>(1, b.copies) * program::whole_pages(b.bytes());
  }
}

// Offsets of what lives; gives the bytes that it takes together.
int64_t place(Program& p, const std::vector<Life>& life, int64_t& lower_bound) {
  std::vector<Item> items;
  std::vector<size_t> buffers;
  for (size_t b = 0; b < life.size(); ++b) {
    if (life[b].end < 0) continue;
    items.push_back({aligned(p.buffers[b].bytes()), {{life[b].begin, life[b].end}}});
    buffers.push_back(b);
  }
  const Packing packing = pack(items);
  for (size_t i = 0; i < items.size(); ++i) p.buffers[buffers[i]].offset = packing.offsets[i];
  lower_bound = packing.lower_bound;
  return packing.bytes;
}

// The timeline of a list: the last micro-batch, which has all that others have, and what follows it; other
// micro-batches use the same buffers again.
Line timeline(Program& p, const CallList& list) {
  int64_t last = 0;
  for (const program::Call& call : list.calls) last = std::max(last, call.micro_batch);
  Line line;
  for (const program::Call& call : list.calls)
    if (call.micro_batch < 0 || call.micro_batch == last)
      for (program::Instruction& i : p.bodies[static_cast<size_t>(call.body)].instructions) line.push_back(&i);
  return line;
}

void plan_one_by_one(Program& p, CallList& list, const graph::OpTable& operations) {
  const Line line = timeline(p, list);
  share_in_place(p, line, operations);
  list.arena_bytes = place(p, lives(p, line), list.lower_bound_bytes);
  list.slots = {{}};
}

// Whether a micro-batch begins before the one before it has ended.
bool interleaves(const CallList& list) {
  int64_t now = 0;
  for (const program::Call& call : list.calls) {
    if (call.micro_batch < 0) continue;
    if (call.micro_batch < now) return true;
    now = call.micro_batch;
  }
  return false;
}

}  // namespace

void plan_memory(Program& p, const graph::OpTable& operations) {
  place_states(p);
  place_in_file(p);
  for (size_t i = 0; i < p.lists.size(); ++i) {
    if (interleaves(p.lists[i])) {
      plan_slots(p, i, operations);
    } else {
      plan_one_by_one(p, p.lists[i], operations);
    }
    p.arena_bytes = std::max(p.arena_bytes, p.lists[i].arena_bytes);
  }
  for (const program::Buffer& b : p.buffers)
    base::require(b.same_as != kNoBuffer || b.offset >= 0 || b.region == Region::arena, "memory", "\"{}\" has no place",
                  b.name);
}

}  // namespace kintsugi::lower
