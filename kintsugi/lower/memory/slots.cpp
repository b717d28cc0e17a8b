#include "kintsugi/lower/memory/slots.h"

#include <map>
#include <utility>

#include "kintsugi/lower/memory/slots_liveness.h"
#include "kintsugi/lower/memory/slots_share.h"

namespace kintsugi::lower {

using program::CallList;
using program::Program;

namespace {

// Separating layers helps if a stage has chunks of several sizes, or if a backward pass consumes one layer's values
// while it produces another's for the weight pass, which many ticks resolve.
constexpr Grain kGrains[] = {
    {.ticks = 1}, {.ticks = 1, .by_layer = true}, {.ticks = 24, .by_layer = true}, {.ticks = 8, .by_layer = true}};
constexpr int64_t kNearBound = 1000;     // within a thousandth of the lower bound
constexpr size_t kMostInstances = 6000;  // time grows quadratically

// The calls of a body with temporaries.
const std::vector<int>& calls_of(const ListLiveness& l, const Segment& temporaries) {
  return l.bodies[static_cast<size_t>(temporaries.body)].calls;
}

// [call][segment]: start in the arena; -1: not present in the call.
std::vector<std::vector<int64_t>> begins_of(const ListLiveness& l, const SlotPlan& plan) {
  std::vector<std::vector<int64_t>> begins(static_cast<size_t>(l.num_calls),
                                           std::vector<int64_t>(plan.segments.list.size(), -1));
  auto instance = plan.placement.instances.begin();
  auto temporaries = plan.placement.temporaries.begin();
  for (size_t at = 0; at < plan.segments.list.size(); ++at) {
    const Segment& s = plan.segments.list[at];
    if (s.carried < 0) {
      const std::vector<int>& calls = calls_of(l, s);
      for (size_t c = 0; c < calls.size(); ++c) begins[static_cast<size_t>(calls[c])][at] = (*temporaries)[c];
      ++temporaries;
      continue;
    }
    for (const std::vector<int>& calls : l.carried[static_cast<size_t>(s.carried)].calls) {
      for (int c : calls) begins[static_cast<size_t>(c)][at] = *instance;
      ++instance;
    }
  }
  return begins;
}

void write(Program& p, CallList& list, const ListLiveness& l, const SlotPlan& plan) {
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    const Segments::Offset& of = plan.segments.offsets[b];
    if (of.segment < 0) continue;
    p.buffers[b].segment = of.segment;
    p.buffers[b].offset = of.offset;
  }
  const std::vector<std::vector<int64_t>> begins = begins_of(l, plan);
  std::map<std::vector<int64_t>, int> known;
  for (size_t c = 0; c < list.calls.size(); ++c) {
    const auto [slot, fresh] = known.try_emplace(begins[c], static_cast<int>(list.slots.size()));
    if (fresh) list.slots.push_back(begins[c]);
    list.calls[c].slot = slot->second;
  }
  list.arena_bytes = plan.placement.bytes;
  list.lower_bound_bytes = plan.lower_bound;
}

}  // namespace

bool interleaves(const CallList& list) {
  int64_t now = 0;
  for (const program::Call& call : list.calls) {
    if (call.micro_batch < 0) continue;
    if (call.micro_batch < now) return true;
    now = call.micro_batch;
  }
  return false;
}

ArenaDemand demand_of(const ListLiveness& l, const Segments& segments) {
  const int ticks_of_call = segments.grain.ticks;
  ArenaDemand demand = {.ticks = ticks_of_call, .instances = {}, .temporaries = {}};
  for (const Segment& s : segments.list) {
    if (s.carried < 0) {
      demand.temporaries.push_back({s.bytes, calls_of(l, s)});
      continue;
    }
    for (const std::vector<int>& calls : l.carried[static_cast<size_t>(s.carried)].calls) {
      const int first = calls.front(), last = calls.back();
      const Interval ticks = {first * ticks_of_call + s.first_tick, last * ticks_of_call + s.last_tick};
      demand.instances.push_back({s.bytes, {first, last}, ticks});
    }
  }
  return demand;
}

SlotPlan best_slot_plan(const Program& p, const CallList& list, const ListLiveness& l, int64_t enough) {
  SlotPlan best;
  best.lower_bound = lower_bound(p, list, l);
  enough = std::max(enough, best.lower_bound + best.lower_bound / kNearBound);
  for (const Grain grain : kGrains) {
    Segments segments = make_segments(p, l, grain);
    ArenaDemand demand = demand_of(l, segments);
    demand.enough = enough;
    const bool first = best.segments.list.empty();
    if (!first && demand.instances.size() > kMostInstances) continue;
    Placement placement = place(demand);
    if (first || placement.bytes < best.placement.bytes) {
      best.segments = std::move(segments);
      best.placement = std::move(placement);
    }
    if (best.placement.bytes <= enough) break;
  }
  return best;
}

void plan_slots(Program& p, size_t list, const graph::OpTable& operations, int64_t enough) {
  CallList& calls = p.lists[list];
  share_between_calls(p, calls, operations);
  const ListLiveness liveness = liveness_of(p, calls);
  write(p, calls, liveness, best_slot_plan(p, calls, liveness, enough));
}

}  // namespace kintsugi::lower
