#include "kintsugi/program/memory_table.h"

#include <algorithm>
#include <set>

#include "kintsugi/base/error.h"

namespace kintsugi::program {

const CallList& largest_list(const Program& p) {
  base::require(!p.lists.empty(), "memory", "a program without lists of calls");
  for (const CallList& list : p.lists)
    if (list.step == Step::train) return list;
  return *std::max_element(p.lists.begin(), p.lists.end(),
                           [](const CallList& a, const CallList& b) { return a.arena_bytes < b.arena_bytes; });
}

namespace {

int64_t& entry_of(MemoryTable& t, StateKind kind) {
  switch (kind) {
    case StateKind::weight:
      return t.weights;
    case StateKind::gradient:
    case StateKind::level:
      return t.gradients;
    case StateKind::optimizer:
      return t.optimizer;
    case StateKind::statistic:
      return t.statistics;
    case StateKind::cache:
      return t.caches;
  }
  throw base::InternalError("memory", "no kind of state {}", static_cast<int>(kind));
}

}  // namespace

MemoryTable memory_table(const Program& p) {
  MemoryTable t;
  std::set<BufferId> counted;
  for (const StateInfo& s : p.states) {
    const BufferId root = p.root(s.buffer);
    if (p.buffer(root).region != Region::state || !counted.insert(root).second) continue;
    entry_of(t, s.kind) += p.buffer(root).bytes();
  }
  const int64_t states = t.weights + t.gradients + t.optimizer + t.caches + t.statistics;
  const CallList& list = largest_list(p);
  for (const Instant& i : memory_over(p, list, list.calls.size()))
    if (i.live.aligned > t.peak.live.aligned) t.peak = i;
  const LiveBytes& live = t.peak.live;
  t.live_gradients = live.gradients;
  t.activations = live.activations;
  t.communication = live.communication;
  t.workspace = live.workspace;
  base::require(live.aligned <= list.arena_bytes && states <= p.state_bytes, "memory",
                "{} is live at once in {} of {} bytes, and {} bytes of states in {}", live.aligned, name_of(list.step),
                list.arena_bytes, states, p.state_bytes);
  t.sums = p.sums_bytes;
  t.staging = p.staged_bytes;
  t.packing = (p.state_bytes - states) + (list.arena_bytes - live.sum());
  t.others = p.arena_bytes - list.arena_bytes;
  return t;
}

ModelShare model_share(const Program& p) {
  ModelShare share;
  std::set<int> layers;
  for (const StateInfo& s : p.states) {
    if (s.kind != StateKind::weight || s.replica) continue;
    layers.insert(s.layer);
    share.parameters += s.whole.shape.elements();
  }
  share.layers.assign(layers.begin(), layers.end());
  return share;
}

}  // namespace kintsugi::program
