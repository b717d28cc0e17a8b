#include "kintsugi/lower/memory/slots_segments.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "kintsugi/lower/memory/first_fit.h"

namespace kintsugi::lower {

using program::BufferId;
using program::Program;

namespace {

struct Ticks {
  int first, last;
};

// The ticks of a body in which the buffer is live in some variant.
Ticks ticks_of(const BodyLiveness& body, BufferId b, int ticks) {
  Ticks found = {ticks - 1, 0};
  const std::vector<LiveRange> live = body.live(b);
  for (size_t v = 0; v < live.size(); ++v) {
    if (live[v].empty()) continue;
    const int length = body.lengths[v];
    found.first = std::min(found.first, live[v].begin * ticks / length);
    found.last = std::max(found.last, std::min(live[v].end, length - 1) * ticks / length);
  }
  return found;
}

// [buffer]: the layer that produces it.
std::vector<int> layers_of(const Program& p, const ListLiveness& l) {
  std::vector<int> layers(p.buffers.size(), 0);
  for (const BodyLiveness& body : l.bodies)
    for (const program::Instruction& i : p.bodies[static_cast<size_t>(body.base)].instructions)
      for (const BufferId b : i.outs) layers[static_cast<size_t>(p.root(b))] = i.layer;
  return layers;
}

// Segments of carried buffers, consecutive in the order in which the first body produces them.
void add_carried(const Program& p, const ListLiveness& l, Segments& s) {
  std::map<std::tuple<int, int, int, int>, size_t> known;
  const std::vector<int> layers = s.grain.by_layer ? layers_of(p, l) : std::vector<int>(p.buffers.size(), 0);
  for (size_t b = 0; b < p.buffers.size(); ++b) {
    const auto id = static_cast<BufferId>(b);
    if (l.carried_of[b] < 0) continue;
    const Carried& carried = l.carried[static_cast<size_t>(l.carried_of[b])];
    const size_t first = carried.bodies.front(), last = carried.bodies.back();
    const int first_tick = ticks_of(l.bodies[first], id, s.grain.ticks).first;
    const int last_tick =
        carried.ends_with(last) ? ticks_of(l.bodies[last], id, s.grain.ticks).last : s.grain.ticks - 1;
    const auto [at, fresh] = known.try_emplace({l.carried_of[b], first_tick, last_tick, layers[b]}, s.list.size());
    if (fresh) s.list.push_back({.carried = l.carried_of[b], .first_tick = first_tick, .last_tick = last_tick});
    s.list[at->second].buffers.push_back(id);
  }
  for (size_t i = 0; i < s.list.size(); ++i) {
    Segment& segment = s.list[i];
    const BodyLiveness& body = l.bodies[l.carried[static_cast<size_t>(segment.carried)].bodies.front()];
    std::stable_sort(segment.buffers.begin(), segment.buffers.end(),
                     [&](BufferId a, BufferId b) { return body.live_in_last(a).begin < body.live_in_last(b).begin; });
    for (BufferId b : segment.buffers) {
      s.offsets[static_cast<size_t>(b)] = {static_cast<int>(i), segment.bytes};
      segment.bytes += p.aligned(p.buffer(b).bytes());
    }
  }
}

// [variant of a body]
using LiveRanges = std::vector<LiveRange>;
using Blocks = std::vector<Block<LiveRanges>>;

// A segment that begins or ends with a body: while the body runs, some of its bytes are not yet live, or no longer.
struct SegmentWithHoles {
  size_t segment;
  int64_t bytes;
  Ticks ticks;   // in which it is present
  Blocks taken;  // sorted by offset
};

// Buffers carried from the body are live until its end, buffers carried to it from its beginning.
LiveRanges live_ranges_of_carried(const BodyLiveness& body, BufferId b, bool begins, bool ends) {
  LiveRanges live = body.live(b);
  for (size_t v = 0; v < live.size(); ++v) {
    const bool untouched = live[v].empty();
    if (begins || untouched) live[v].end = body.lengths[v];
    if (ends || untouched) live[v].begin = 0;
  }
  return live;
}

std::vector<SegmentWithHoles> segments_with_holes(const Program& p, const ListLiveness& l, size_t body,
                                                  const Segments& s) {
  std::vector<SegmentWithHoles> list;
  for (size_t i = 0; i < s.list.size(); ++i) {
    const Segment& segment = s.list[i];
    if (segment.carried < 0) continue;
    const Carried& carried = l.carried[static_cast<size_t>(segment.carried)];
    const bool begins = carried.begins_with(body), ends = carried.ends_with(body);
    if ((!begins && !ends) || carried.of_step || !carried.in_every_micro_batch) continue;
    list.push_back(
        {i, segment.bytes, {begins ? segment.first_tick : 0, ends ? segment.last_tick : s.grain.ticks - 1}, {}});
    for (BufferId b : segment.buffers)
      list.back().taken.push_back({s.offsets[static_cast<size_t>(b)].offset, p.aligned(p.buffer(b).bytes()),
                                   live_ranges_of_carried(l.bodies[body], b, begins, ends)});
  }
  return list;
}

struct Temporary {
  int64_t bytes;
  LiveRanges live;
  Ticks ticks;
};

// -1: no hole fits.
int64_t offset_in_hole(const SegmentWithHoles& s, const Temporary& t) {
  if (t.ticks.first < s.ticks.first || t.ticks.last > s.ticks.last) return -1;
  const int64_t offset = lowest_offset(s.taken, t.live, t.bytes);
  return offset + t.bytes <= s.bytes ? offset : -1;
}

void add_temporaries(const Program& p, const ListLiveness& l, size_t body, Segments& s) {
  std::vector<SegmentWithHoles> with_holes = segments_with_holes(p, l, body, s);
  Segment own = {.body = static_cast<int>(body), .last_tick = s.grain.ticks - 1};
  Blocks taken;  // within it
  for (BufferId b : l.bodies[body].temporaries) {
    const Temporary t = {p.aligned(p.buffer(b).bytes()), l.bodies[body].live(b),
                         ticks_of(l.bodies[body], b, s.grain.ticks)};
    int64_t offset = -1;
    auto hole = with_holes.begin();
    while (hole != with_holes.end() && (offset = offset_in_hole(*hole, t)) < 0) ++hole;
    if (hole != with_holes.end()) {
      s.offsets[static_cast<size_t>(b)] = {static_cast<int>(hole->segment), offset};
      s.list[hole->segment].in_holes.push_back(b);
      insert_block(hole->taken, {offset, t.bytes, t.live});
      continue;
    }
    offset = lowest_offset(taken, t.live, t.bytes);
    s.offsets[static_cast<size_t>(b)] = {static_cast<int>(s.list.size()), offset};
    own.buffers.push_back(b);
    own.bytes = std::max(own.bytes, offset + t.bytes);
    insert_block(taken, {offset, t.bytes, t.live});
  }
  if (!own.buffers.empty()) s.list.push_back(std::move(own));
}

}  // namespace

Segments make_segments(const Program& p, const ListLiveness& liveness, Grain grain) {
  Segments s = {.grain = grain, .offsets = std::vector<Segments::Offset>(p.buffers.size())};
  add_carried(p, liveness, s);
  for (size_t body = 0; body < liveness.bodies.size(); ++body) add_temporaries(p, liveness, body, s);
  return s;
}

}  // namespace kintsugi::lower
