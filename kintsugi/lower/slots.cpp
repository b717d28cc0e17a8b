#include "kintsugi/lower/slots.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "kintsugi/lower/lives.h"
#include "kintsugi/lower/pack.h"

namespace kintsugi::lower {

using program::aligned;
using program::Body;
using program::BufferId;
using program::Call;
using program::CallList;
using program::Instruction;
using program::kNoBuffer;
using program::Program;

namespace {

// The lives of a buffer in each variant of a body.
using Lives = std::vector<Life>;

bool overlap(const Lives& a, const Lives& b) {
  for (size_t v = 0; v < a.size(); ++v)
    if (a[v].overlaps(b[v])) return true;
  return false;
}

// A place within a segment, while a body runs.
struct Placed {
  int64_t offset = 0, bytes = 0;
  Lives lives;
};

// The lowest offset at which a buffer that lives so fits beside what is placed.
int64_t lowest(const std::vector<Placed>& placed, const Lives& lives, int64_t bytes) {
  int64_t offset = 0;
  for (const Placed& other : placed) {  // in the order of offsets
    if (!overlap(other.lives, lives)) continue;
    if (other.offset >= offset + bytes) break;
    offset = std::max(offset, other.offset + other.bytes);
  }
  return offset;
}

void insert(std::vector<Placed>& placed, Placed p) {
  placed.insert(std::upper_bound(placed.begin(), placed.end(), p,
                                 [](const Placed& a, const Placed& b) { return a.offset < b.offset; }),
                p);
}

constexpr size_t kMany = 600;  // segments of micro-batches; then stacks are as good, and much faster made

// How instances of segments find their places, and what one body alone needs.
enum class Way {
  packed,  // together; the latter in one place for all calls
  beside,  // the former together, the latter in each call where they leave room
  stacked  // the former largest first, each as low as it can be; the latter as beside
};

class SlotPlanner {
 public:
  SlotPlanner(Program& p, CallList& list, int phases) : p_(p), list_(list), phases_of_body_(phases) {
    for (const Call& call : list.calls) last_ = std::max(last_, call.micro_batch);
    for (const Call& call : list.calls)
      if (call.micro_batch < 0 || call.micro_batch == last_) bodies_.push_back(call.body);
  }

  // Gives how many segments of micro-batches there are.
  size_t run() {
    find_segments();
    place_kept();
    for (size_t at = 0; at < bodies_.size(); ++at) place_temporaries(at);
    find_instances();
    place_instances();
    fill_slots();
    bound();
    return instances_.size();
  }

  // In place only within one body, or from what ends there in every micro-batch: a wait for what was sent may come
  // earlier or later than other calls.
  void share(const graph::OpTable& operations) {
    const std::vector<std::vector<size_t>> of = touching();
    Line line;
    for (size_t at = 0; at < bodies_.size(); ++at)
      for (Instruction& i : body(at).instructions) line.push_back(&i);
    share_in_place(p_, line, operations, [&](BufferId from, BufferId to) {
      const std::vector<size_t>&x = of[static_cast<size_t>(from)], &y = of[static_cast<size_t>(to)];
      return std::includes(x.begin(), x.end(), y.begin(), y.end()) &&
             std::none_of(x.begin(), x.end(), [&](size_t at) { return is_sent(at); }) && dies_in_all(from, to);
    });
  }

 private:
  // Whether in each variant that makes `to` nothing touches `from` any more, but what makes it and the wait for that.
  bool dies_in_all(BufferId from, BufferId to) {
    const auto has = [&](const std::vector<BufferId>& list, BufferId b) {
      return std::any_of(list.begin(), list.end(), [&](BufferId x) { return p_.root(x) == b; });
    };
    for (const Body& body : p_.bodies) {
      bool made = false;
      for (const Instruction& i : body.instructions) {
        const bool makes = has(i.outs, to);
        if (made && !makes && (has(i.ins, from) || has(i.outs, from))) return false;
        made |= makes;
      }
    }
    return true;
  }

  // A set of bodies, as places in bodies_, and the buffers that they all share: from a phase of the first of them to a
  // phase of the last. Of one body: what it alone needs.
  struct Segment {
    std::vector<size_t> bodies;
    int first_phase = 0, last_phase = 0;
    std::vector<BufferId> buffers;
    int64_t bytes = 0;
    bool once = false;  // for the step, not for each micro-batch
  };
  struct Instance {
    int segment = 0;
    int64_t micro_batch = 0;
    int begin = 0, end = 0;  // calls
    int64_t base = 0;
  };
  struct Own {
    int segment = -1;
    int64_t base = 0;
  };
  struct Phases {
    int first = 1 << 30, last = 0;
  };

  // Whether each micro-batch has one of that segment.
  bool is_always_there(const Segment& segment) const {
    return !segment.once && std::all_of(segment.bodies.begin(), segment.bodies.end(), [&](size_t at) {
      std::set<int64_t> micro_batches;
      for (const Call& call : list_.calls)
        if (p_.base(call.body) == p_.base(bodies_[at])) micro_batches.insert(call.micro_batch);
      return static_cast<int64_t>(micro_batches.size()) == last_ + 1;
    });
  }

  // The last body of a segment; none where one of them is a wait that has no fixed place among the others.
  bool ends_with(const Segment& segment, size_t at) {
    const auto sent = [&](size_t b) { return is_sent(b); };
    return segment.bodies.back() == at && std::none_of(segment.bodies.begin(), segment.bodies.end(), sent);
  }

  bool is_sent(size_t at) { return body(at).role == program::Role::waits_for_sent; }

  Body& body(size_t at) { return p_.bodies[static_cast<size_t>(bodies_[at])]; }

  // The bodies, as places in bodies_, that touch each root.
  std::vector<std::vector<size_t>> touching() {
    std::vector<std::vector<size_t>> of(p_.buffers.size());
    for (size_t at = 0; at < bodies_.size(); ++at) {
      const auto touch = [&](BufferId b) {
        if (b == kNoBuffer || p_.buffer(p_.root(b)).region != program::Region::arena) return;
        std::vector<size_t>& list = of[static_cast<size_t>(p_.root(b))];
        if (list.empty() || list.back() != at) list.push_back(at);
      };
      for (const Instruction& i : body(at).instructions) {
        for (BufferId b : i.ins) touch(b);
        for (BufferId b : i.outs) touch(b);
        touch(i.workspace);
      }
    }
    return of;
  }

  // The phases in which a body, or some variant of it, touches each root.
  std::vector<Phases> phases_in(size_t at) {
    std::vector<Phases> list(p_.buffers.size());
    for (size_t v = 0; v < p_.bodies.size(); ++v) {
      if (p_.base(static_cast<int>(v)) != p_.base(bodies_[at])) continue;
      Line line;
      for (Instruction& i : p_.bodies[v].instructions) line.push_back(&i);
      const std::vector<Life> life = lives(p_, line);
      const int length = std::max(1, static_cast<int>(line.size()));
      for (size_t b = 0; b < life.size(); ++b) {
        if (life[b].end < 0) continue;
        list[b].first = std::min(list[b].first, life[b].begin * phases_of_body_ / length);
        list[b].last = std::max(list[b].last, std::min(life[b].end, length - 1) * phases_of_body_ / length);
      }
    }
    return list;
  }

  void find_segments() {
    const std::vector<std::vector<size_t>> of = touching();
    for (size_t at = 0; at < bodies_.size(); ++at) phases_.push_back(phases_in(at));
    std::map<std::tuple<std::vector<size_t>, int, int>, size_t> known;
    for (size_t b = 0; b < of.size(); ++b) {
      if (of[b].empty() || p_.buffers[b].same_as != kNoBuffer) continue;
      if (of[b].size() == 1) {
        temporaries_[of[b][0]].push_back(static_cast<BufferId>(b));
        continue;
      }
      Segment made = {.bodies = of[b], .buffers = {}};
      for (size_t in : of[b]) made.once |= micro_batch_of(in) < 0;
      made.first_phase = phases_[of[b].front()][b].first;
      made.last_phase = ends_with(made, of[b].back()) ? phases_[of[b].back()][b].last : phases_of_body_ - 1;
      const auto [at, fresh] = known.try_emplace({of[b], made.first_phase, made.last_phase}, segments_.size());
      if (fresh) segments_.push_back(std::move(made));
      segments_[at->second].buffers.push_back(static_cast<BufferId>(b));
    }
  }

  int64_t micro_batch_of(size_t at) const {
    for (const Call& call : list_.calls)
      if (call.body == bodies_[at]) return call.micro_batch < 0 ? -1 : 0;
    return 0;
  }

  std::vector<Life> lives_in(size_t at) {
    Line line;
    for (Instruction& i : body(at).instructions) line.push_back(&i);
    return lives(p_, line);
  }

  // All of a segment live from its first body to its last: one behind another, in the order in which they are made.
  void place_kept() {
    for (size_t s = 0; s < segments_.size(); ++s) {
      Segment& segment = segments_[s];
      const std::vector<Life> life = lives_in(segment.bodies[0]);
      std::stable_sort(segment.buffers.begin(), segment.buffers.end(), [&](BufferId a, BufferId b) {
        return life[static_cast<size_t>(a)].begin < life[static_cast<size_t>(b)].begin;
      });
      for (BufferId b : segment.buffers) {
        p_.buffer(b).segment = static_cast<int>(s);
        p_.buffer(b).offset = segment.bytes;
        segment.bytes += aligned(p_.buffer(b).bytes());
      }
    }
  }

  void place_temporaries(size_t at) {
    std::vector<std::vector<Life>> life;  // by variant
    std::vector<int> length;
    for (size_t v = 0; v < p_.bodies.size(); ++v) {
      if (p_.base(static_cast<int>(v)) != p_.base(bodies_[at])) continue;
      Line line;
      for (Instruction& i : p_.bodies[v].instructions) line.push_back(&i);
      life.push_back(lives(p_, line));
      length.push_back(static_cast<int>(line.size()));
    }
    const auto lives_of = [&](BufferId b) {
      Lives list;
      for (const std::vector<Life>& l : life) list.push_back(l[static_cast<size_t>(b)]);
      return list;
    };
    // What is taken of each segment that has room while this body runs, and in which of its phases it is there.
    struct Room {
      size_t segment;
      int first, last;
      std::vector<Placed> placed;
    };
    std::vector<Room> rooms;
    for (size_t s = 0; s < segments_.size(); ++s) {
      const Segment& segment = segments_[s];
      const bool first = segment.bodies.front() == at, last = ends_with(segment, at);
      if (segment.bodies.size() == 1 || (!first && !last) || !is_always_there(segment)) continue;
      Room room = {s, first ? segment.first_phase : 0, last ? segment.last_phase : phases_of_body_ - 1, {}};
      for (BufferId b : segment.buffers) {
        Lives list = lives_of(b);
        for (size_t v = 0; v < list.size(); ++v) {
          const bool touched = list[v].end >= 0;
          if (first || !touched) list[v].end = length[v];
          if (last || !touched) list[v].begin = 0;
        }
        insert(room.placed, {p_.buffer(b).offset, aligned(p_.buffer(b).bytes()), std::move(list)});
      }
      rooms.push_back(std::move(room));
    }
    std::vector<Placed> work;
    Segment own = {.bodies = {at}, .last_phase = phases_of_body_ - 1, .buffers = {}};
    std::vector<BufferId>& list = temporaries_[at];
    std::stable_sort(list.begin(), list.end(),
                     [&](BufferId a, BufferId b) { return p_.buffer(a).bytes() > p_.buffer(b).bytes(); });
    for (BufferId b : list) {
      const int64_t bytes = aligned(p_.buffer(b).bytes());
      const Lives l = lives_of(b);
      const Phases& now = phases_[at][static_cast<size_t>(b)];
      const auto put = [&](size_t segment, std::vector<Placed>& placed, int64_t offset) {
        p_.buffer(b).segment = static_cast<int>(segment);
        p_.buffer(b).offset = offset;
        insert(placed, {offset, bytes, l});
      };
      bool found = false;
      for (Room& room : rooms) {
        if (found || now.first < room.first || now.last > room.last) continue;
        const int64_t offset = lowest(room.placed, l, bytes);
        if (offset + bytes > segments_[room.segment].bytes) continue;
        put(room.segment, room.placed, offset);
        found = true;
      }
      if (found) continue;
      const int64_t offset = lowest(work, l, bytes);
      put(segments_.size(), work, offset);
      own.bytes = std::max(own.bytes, offset + bytes);
    }
    if (own.bytes > 0) segments_.push_back(std::move(own));
  }

  // The segments of a micro-batch live from call to call.
  void find_instances() {
    for (size_t s = 0; s < segments_.size(); ++s) {
      if (segments_[s].bodies.size() == 1) continue;
      std::set<int> bases;
      for (size_t at : segments_[s].bodies) bases.insert(p_.base(bodies_[at]));
      std::map<int64_t, Instance> by_micro_batch;
      std::map<int64_t, std::set<int>> seen;
      for (size_t c = 0; c < list_.calls.size(); ++c) {
        const Call& call = list_.calls[c];
        if (!bases.contains(p_.base(call.body))) continue;
        if (segments_[s].once && call.micro_batch >= 0 && call.micro_batch != last_) continue;
        const int64_t m = segments_[s].once ? last_ : call.micro_batch;
        seen[m].insert(p_.base(call.body));
        by_micro_batch.try_emplace(m, Instance{static_cast<int>(s), m, static_cast<int>(c), 0, 0}).first->second.end =
            static_cast<int>(c);
      }
      for (auto& [m, instance] : by_micro_batch)
        if (seen[m].size() == bases.size()) instances_.push_back(instance);
    }
  }

  void place_instances() {
    const std::vector<Instance> found = instances_;
    std::vector<Instance> best;
    std::vector<Own> best_own;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const Way way : {Way::stacked, Way::packed, Way::beside}) {
      if (way != Way::stacked && found.size() > kMany) break;
      instances_ = found;
      own_.assign(list_.calls.size(), {-1, 0});
      if (way == Way::stacked) {
        stack_instances();
      } else {
        pack_instances(way == Way::packed);
      }
      if (way != Way::packed) place_own();
      if (list_.arena_bytes >= least) continue;
      least = list_.arena_bytes;
      best = instances_;
      best_own = own_;
    }
    instances_ = std::move(best);
    own_ = std::move(best_own);
    list_.arena_bytes = least;
  }

  // Each instance has a place of its own; `with_own`: what one body alone needs has one for all of its calls.
  void pack_instances(bool with_own) {
    std::vector<Item> items;
    for (const Instance& i : instances_) {
      const Segment& s = segments_[static_cast<size_t>(i.segment)];
      items.push_back({s.bytes, {{i.begin * phases_of_body_ + s.first_phase, i.end * phases_of_body_ + s.last_phase}}});
    }
    std::vector<size_t> own;
    for (size_t s = 0; s < segments_.size(); ++s) {
      if (segments_[s].bodies.size() > 1 || !with_own) continue;
      Item item = {segments_[s].bytes, {}};
      for_calls_of(s, [&](size_t call) {
        const int c = static_cast<int>(call);
        const Interval now = {c * phases_of_body_, c * phases_of_body_ + phases_of_body_ - 1};
        if (!item.lives.empty() && item.lives.back().end + 1 == now.begin) {
          item.lives.back().end = now.end;
        } else {
          item.lives.push_back(now);
        }
      });
      own.push_back(s);
      items.push_back(std::move(item));
    }
    const Packing packing = pack(items);
    list_.arena_bytes = packing.bytes;
    for (size_t i = 0; i < instances_.size(); ++i) instances_[i].base = packing.offsets[i];
    for (size_t i = 0; i < own.size(); ++i)
      for_calls_of(own[i], [&](size_t c) {
        own_[c] = {static_cast<int>(own[i]), packing.offsets[instances_.size() + i]};
      });
  }

  // The calls of the body whose own segment that is.
  template <typename F>
  void for_calls_of(size_t segment, const F& f) const {
    const int base = p_.base(bodies_[segments_[segment].bodies[0]]);
    for (size_t c = 0; c < list_.calls.size(); ++c)
      if (p_.base(list_.calls[c].body) == base) f(c);
  }

  // In each call as low as the instances that are there leave room.
  void place_own() {
    for (size_t s = 0; s < segments_.size(); ++s) {
      if (segments_[s].bodies.size() > 1) continue;
      for_calls_of(s, [&](size_t c) {
        std::vector<Placed> there;
        for (const Instance& i : instances_)
          if (i.begin <= static_cast<int>(c) && static_cast<int>(c) <= i.end)
            there.push_back({i.base, bytes_of(i), {{i.begin, i.end}}});
        std::sort(there.begin(), there.end(), [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
        const int now = static_cast<int>(c);
        own_[c] = {static_cast<int>(s), lowest(there, {{now, now}}, segments_[s].bytes)};
        list_.arena_bytes = std::max(list_.arena_bytes, own_[c].base + segments_[s].bytes);
      });
    }
  }

  // Those of one size follow each other in the same places.
  void stack_instances() {
    std::stable_sort(instances_.begin(), instances_.end(), [&](const Instance& a, const Instance& b) {
      return std::pair(-bytes_of(a), a.begin) < std::pair(-bytes_of(b), b.begin);
    });
    std::vector<Placed> placed;
    list_.arena_bytes = 0;
    for (Instance& i : instances_) {
      const Lives life = {{i.begin, i.end}};
      i.base = lowest(placed, life, bytes_of(i));
      insert(placed, {i.base, bytes_of(i), life});
      list_.arena_bytes = std::max(list_.arena_bytes, i.base + bytes_of(i));
    }
  }

  int64_t bytes_of(const Instance& i) const { return segments_[static_cast<size_t>(i.segment)].bytes; }

  void fill_slots() {
    std::vector<std::vector<int64_t>> at(list_.calls.size(), std::vector<int64_t>(segments_.size(), -1));
    for (size_t c = 0; c < list_.calls.size(); ++c)
      if (own_[c].segment >= 0) at[c][static_cast<size_t>(own_[c].segment)] = own_[c].base;
    for (const Instance& i : instances_)
      for (int c = i.begin; c <= i.end; ++c)
        if (touches(i, list_.calls[static_cast<size_t>(c)]))
          at[static_cast<size_t>(c)][static_cast<size_t>(i.segment)] = i.base;
    std::map<std::vector<int64_t>, int> known;
    for (size_t c = 0; c < list_.calls.size(); ++c) {
      const auto [slot, fresh] = known.try_emplace(at[c], static_cast<int>(list_.slots.size()));
      if (fresh) list_.slots.push_back(at[c]);
      list_.calls[c].slot = slot->second;
    }
  }

  // Of every call: what lives within it, and the segments of other micro-batches and of bodies that come later.
  void bound() {
    std::map<int, int64_t> most;  // by body: beside the segments that it touches
    for (size_t at = 0; at < bodies_.size(); ++at) {
      std::vector<Life> life = lives_in(at);
      const int length = static_cast<int>(body(at).instructions.size());
      for (const Segment& segment : segments_)
        for (BufferId b : segment.buffers) {
          if (segment.bodies.size() == 1) continue;
          Life& l = life[static_cast<size_t>(b)];
          const bool within = std::find(segment.bodies.begin(), segment.bodies.end(), at) != segment.bodies.end();
          if (!within) continue;
          if (segment.bodies.front() != at) l.begin = 0;
          if (!ends_with(segment, at)) l.end = length;
        }
      const std::vector<int64_t> now = sums(p_, life, static_cast<size_t>(length));
      int64_t& all = most[p_.base(bodies_[at])];
      all = std::max(all, *std::max_element(now.begin(), now.end()));
    }
    for (size_t c = 0; c < list_.calls.size(); ++c) {
      const Call& call = list_.calls[c];
      int64_t now = most[p_.base(call.body)];
      for (const Instance& i : instances_)
        if (i.begin <= static_cast<int>(c) && static_cast<int>(c) <= i.end && !touches(i, call)) now += bytes_of(i);
      list_.lower_bound_bytes = std::max(list_.lower_bound_bytes, now);
    }
  }

  bool touches(const Instance& i, const Call& call) const {
    if (call.micro_batch >= 0 && call.micro_batch != i.micro_batch) return false;
    const Segment& segment = segments_[static_cast<size_t>(i.segment)];
    return std::any_of(segment.bodies.begin(), segment.bodies.end(),
                       [&](size_t at) { return p_.base(bodies_[at]) == p_.base(call.body); });
  }

  Program& p_;
  CallList& list_;
  // A body is cut into as many phases, by its instructions; what begins late in one or ends early shares memory so.
  const int phases_of_body_;
  int64_t last_ = 0;
  std::vector<int> bodies_;  // of the last micro-batch, which has all that others have, and of the step
  std::vector<Segment> segments_;
  std::map<size_t, std::vector<BufferId>> temporaries_;
  std::vector<std::vector<Phases>> phases_;  // by body, by root
  std::vector<Instance> instances_;
  std::vector<Own> own_;  // of each call, the segment of its body alone
};

}  // namespace

// Fewer phases fit better where micro-batches are many, more where much changes within a body: the best is taken.
void plan_slots(Program& p, size_t list, const graph::OpTable& operations) {
  SlotPlanner(p, p.lists[list], 1).share(operations);
  Program best;
  for (int phases : {1, 8, 24}) {
    Program trial = p;
    const size_t segments = SlotPlanner(trial, trial.lists[list], phases).run();
    if (phases == 1 || trial.lists[list].arena_bytes < best.lists[list].arena_bytes) best = std::move(trial);
    if (segments > kMany) break;
  }
  p = std::move(best);
}

}  // namespace kintsugi::lower
