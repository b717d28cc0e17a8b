// For tests of slots: small programs, and their plans as text.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/lower/memory/memory.h"
#include "kintsugi/lower/memory/slots.h"
#include "kintsugi/lower/order/overlap.h"
#include "kintsugi/lower/order/schedule.h"
#include "kintsugi/lower/pass_test.h"
#include "kintsugi/program/verify.h"

namespace kintsugi::lower {

// Buffers in units of 64 bytes, for short plans.
struct Example : Maker {
  BufferId w = state("w", {{"n", 16}}), g = state("g", {{"n", 16}}, program::StateKind::gradient);

  BufferId make(const std::string& name, int64_t units) { return arena(name, {{"n", 16 * units}}); }
  void body_of(const std::string& work, int chunk) {
    body(work);
    p.bodies.back().chunk = chunk;
    p.bodies.back().name += fmt::format(".{}", chunk);
  }
  void update() {
    body("update");
    call("accumulate", {g}, {w});
  }
  void plan(const char* schedule, int stages, int chunks, int64_t micro_batches) {
    lower::schedule(p, plan::make_schedule(schedule, stages, chunks, micro_batches));
    overlap(p);
    plan_memory(p, ops::operations());
    program::verify(p);
  }
};

// "a:0+128": in segment 0, 128 bytes from its beginning; "b=a": shares the memory of a. "backward(1) 0 -": the call of
// micro-batch 1, and where its segments begin.
inline std::string planned(const program::Program& p) {
  std::string t;
  for (const program::Buffer& b : p.buffers) {
    if (b.same_as != program::kNoBuffer) t += fmt::format("{}={} ", b.name, p.buffer(b.same_as).name);
    if (b.segment >= 0) t += fmt::format("{}:{}+{} ", b.name, b.segment, b.offset);
  }
  t.back() = '\n';
  const program::CallList& list = p.lists[0];
  for (const program::Call& c : list.calls) {
    t += fmt::format("{}({})", p.bodies[static_cast<size_t>(c.body)].name, c.micro_batch);
    for (int64_t begin : list.slots[static_cast<size_t>(c.slot)])
      t += begin < 0 ? std::string(" -") : fmt::format(" {}", begin);
    t += "\n";
  }
  return t + fmt::format("{} bytes, at least {}\n", list.arena_bytes, list.lower_bound_bytes);
}

// "packed with 8 ticks: stacked 512, packed 448, beside 512": the plan, and the candidates it was chosen from.
inline std::string choice(const program::Program& p) {
  const ListLiveness liveness = liveness_of(p, p.lists[0]);
  const SlotPlan best = best_slot_plan(p, p.lists[0], liveness);
  const ArenaDemand demand = demand_of(liveness, best.segments);
  const Grain grain = best.segments.grain;
  return fmt::format("{} with {} ticks{}: stacked {}, packed {}, beside {}", name_of(best.placement.method),
                     grain.ticks, grain.by_layer ? " by layer" : "", place_stacked(demand).bytes,
                     place_packed(demand).bytes, place_beside(demand).bytes);
}

// The temporaries in holes of segments.
inline std::vector<std::string> in_holes(const program::Program& p) {
  std::vector<std::string> names;
  for (const Segment& s : best_slot_plan(p, p.lists[0], liveness_of(p, p.lists[0])).segments.list)
    for (BufferId b : s.in_holes) names.push_back(p.buffer(b).name);
  return names;
}

}  // namespace kintsugi::lower
