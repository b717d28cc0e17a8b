#include "kintsugi/lower/memory/slots_liveness.h"

#include <algorithm>
#include <map>
#include <set>

#include "kintsugi/program/walk.h"

namespace kintsugi::lower {

using program::BufferId;
using program::Call;
using program::CallList;
using program::Program;

namespace {

BodyLiveness liveness_of_body(const Program& p, const CallList& list, int body) {
  BodyLiveness made = {.base = p.base(body),
                       .waits_for_sent = p.bodies[static_cast<size_t>(body)].role == program::Role::waits_for_sent};
  std::set<int64_t> micro_batches;
  for (size_t c = 0; c < list.calls.size(); ++c) {
    if (p.base(list.calls[c].body) != made.base) continue;
    made.calls.push_back(static_cast<int>(c));
    micro_batches.insert(list.calls[c].micro_batch);
  }
  made.of_step = micro_batches.contains(-1);
  made.in_every_micro_batch = static_cast<int64_t>(micro_batches.size()) == program::last_micro_batch(list) + 1;
  for (int v = 0; v < static_cast<int>(p.bodies.size()); ++v) {
    if (p.base(v) != made.base) continue;
    if (v == body) made.last = made.ranges.size();
    const Instructions all = instructions_of(p, {v});
    made.lengths.push_back(static_cast<int>(all.size()));
    made.ranges.push_back(live_ranges(p, all));
  }
  return made;
}

// The calls of carried buffers, per micro-batch that has a call of each body. Buffers of the step count for the last
// micro-batch.
std::vector<std::vector<int>> calls_of(const Program& p, const CallList& list, const ListLiveness& l,
                                       const Carried& carried) {
  std::set<int> bases;
  for (size_t body : carried.bodies) bases.insert(l.bodies[body].base);
  const int64_t last = program::last_micro_batch(list);
  std::map<int64_t, std::vector<int>> calls;
  std::map<int64_t, std::set<int>> seen;
  for (size_t c = 0; c < list.calls.size(); ++c) {
    const Call& call = list.calls[c];
    if (!bases.contains(p.base(call.body))) continue;
    if (carried.of_step && call.micro_batch >= 0 && call.micro_batch != last) continue;
    const int64_t m = carried.of_step ? last : call.micro_batch;
    calls[m].push_back(static_cast<int>(c));
    seen[m].insert(p.base(call.body));
  }
  std::vector<std::vector<int>> found;
  for (auto& [m, of] : calls)
    if (seen[m].size() == bases.size()) found.push_back(std::move(of));
  return found;
}

Carried carried_by(const Program& p, const CallList& list, const ListLiveness& l, const std::vector<size_t>& bodies) {
  Carried made = {.bodies = bodies, .in_every_micro_batch = true};
  for (size_t body : bodies) {
    made.of_step |= l.bodies[body].of_step;
    made.in_every_micro_batch &= l.bodies[body].in_every_micro_batch;
    made.waits_for_sent |= l.bodies[body].waits_for_sent;
  }
  made.calls = calls_of(p, list, l, made);
  return made;
}

}  // namespace

std::vector<LiveRange> BodyLiveness::live(BufferId b) const {
  std::vector<LiveRange> live;
  for (const std::vector<LiveRange>& of_variant : ranges) live.push_back(of_variant[static_cast<size_t>(b)]);
  return live;
}

std::vector<std::vector<size_t>> bodies_touching(const Program& p, const std::vector<int>& bodies) {
  std::vector<std::vector<size_t>> of(p.buffers.size());
  for (size_t at = 0; at < bodies.size(); ++at) {
    const std::vector<LiveRange> live = live_ranges(p, instructions_of(p, {bodies[at]}));
    for (size_t b = 0; b < live.size(); ++b)
      if (!live[b].empty()) of[b].push_back(at);
  }
  return of;
}

ListLiveness liveness_of(const Program& p, const CallList& list) {
  ListLiveness l = {.num_calls = static_cast<int>(list.calls.size()), .bodies = {}, .carried = {}, .carried_of = {}};
  const std::vector<int> bodies = bodies_of_last_micro_batch(list);
  for (int body : bodies) l.bodies.push_back(liveness_of_body(p, list, body));
  l.carried_of.assign(p.buffers.size(), -1);
  std::map<std::vector<size_t>, size_t> known;
  const std::vector<std::vector<size_t>> touching = bodies_touching(p, bodies);
  for (size_t b = 0; b < touching.size(); ++b) {
    if (touching[b].empty()) continue;
    if (touching[b].size() == 1) {
      l.bodies[touching[b][0]].temporaries.push_back(static_cast<BufferId>(b));
      continue;
    }
    const auto [at, fresh] = known.try_emplace(touching[b], l.carried.size());
    if (fresh) l.carried.push_back(carried_by(p, list, l, touching[b]));
    l.carried_of[b] = static_cast<int>(at->second);
    l.carried[at->second].bytes += p.aligned(p.buffers[b].bytes());
  }
  for (BodyLiveness& body : l.bodies)
    std::stable_sort(body.temporaries.begin(), body.temporaries.end(),
                     [&](BufferId a, BufferId b) { return p.buffer(a).bytes() > p.buffer(b).bytes(); });
  return l;
}

int64_t lower_bound(const Program& p, const CallList& list, const ListLiveness& l) {
  std::map<int, int64_t> within;  // [body]: bytes live within its calls
  for (size_t at = 0; at < l.bodies.size(); ++at) {
    const BodyLiveness& body = l.bodies[at];
    const int length = body.lengths[body.last];
    std::vector<LiveRange> live = body.ranges[body.last];
    for (size_t b = 0; b < live.size(); ++b) {
      if (live[b].empty() || l.carried_of[b] < 0) continue;
      const Carried& carried = l.carried[static_cast<size_t>(l.carried_of[b])];
      if (!carried.begins_with(at)) live[b].begin = 0;
      if (!carried.ends_with(at)) live[b].end = length;
    }
    const std::vector<int64_t> bytes = live_bytes(p, live, static_cast<size_t>(length));
    int64_t& most = within[body.base];
    most = std::max(most, *std::max_element(bytes.begin(), bytes.end()));
  }
  std::vector<int64_t> all;
  for (const Call& call : list.calls) all.push_back(within[p.base(call.body)]);
  for (const Carried& carried : l.carried)
    for (const std::vector<int>& calls : carried.calls) {
      for (int c = calls.front(); c <= calls.back(); ++c) all[static_cast<size_t>(c)] += carried.bytes;
      for (int c : calls) all[static_cast<size_t>(c)] -= carried.bytes;  // counted within these calls
    }
  return *std::max_element(all.begin(), all.end());
}

}  // namespace kintsugi::lower
