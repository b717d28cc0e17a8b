#include "kintsugi/program/memory_table.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "kintsugi/base/error.h"

namespace kintsugi::program {
namespace {

void add(Live& to, const Live& x, int64_t sign = 1) {
  to.activations += sign * x.activations;
  to.communication += sign * x.communication;
  to.workspace += sign * x.workspace;
  to.aligned += sign * x.aligned;
}

// Instructions of a body, both inclusive.
struct Range {
  int begin = 0, end = 0;
};

// How a body touches a root.
struct Use {
  BufferId root = kNoBuffer;
  Range touched = {};
  std::vector<Range> under_way = {};  // while a collective works on it, apart and ascending
  bool waits = false;                 // for a message of an earlier call
  int open = 0;                       // messages that are started less those that are waited for
};

class MemoryWalk {
 public:
  // Called for each call with what lives during each of its instructions.
  using Visit = std::function<void(size_t call, const std::vector<Live>&)>;

  MemoryWalk(const Program& p, const CallList& list) : p_(p), list_(list), roots_(p.buffers.size()) {
    for (const Call& call : list.calls) last_ = std::max(last_, call.micro_batch);
    uses_.resize(p.bodies.size());
    std::vector<bool> known(p.bodies.size(), false);
    for (const Call& call : list.calls) {
      if (known[static_cast<size_t>(call.body)]) continue;
      known[static_cast<size_t>(call.body)] = true;
      read(call.body);
    }
    int kept = 0;
    for (Root& r : roots_)
      if (r.bases.size() > 1) r.kept = kept++;
    instances_.resize(static_cast<size_t>(kept) * static_cast<size_t>(last_ + 1));
    for (const Call& call : list.calls)
      for (const Use& use : uses_[static_cast<size_t>(call.body)])
        if (Instance* i = instance(use.root, call)) ++i->touches;
  }

  void run(const Visit& visit) {
    find_between();
    Live now;
    std::vector<Live> during;
    for (size_t c = 0; c < list_.calls.size(); ++c) {
      add(now, between_[c]);
      const Call& call = list_.calls[c];
      const auto length = static_cast<int>(p_.bodies[static_cast<size_t>(call.body)].instructions.size());
      if (length == 0) continue;
      during.assign(static_cast<size_t>(length) + 1, {});
      during[0] = now;
      each(c, [&](const Use& use, const Instance& i) { within(use, i, call, length, during); });
      for (size_t at = 1; at < during.size(); ++at) add(during[at], during[at - 1]);
      during.pop_back();
      visit(c, during);
    }
  }

 private:
  struct Root {
    std::set<int> bases;  // bodies that touch it, variants counted once
    int kept = -1;        // a place among those that live from call to call
    bool workspace = false;
    bool computed = false, read = false;  // written and read by kernels
    bool received = false, sent = false;  // by collectives
  };
  // A root in a micro-batch.
  struct Instance {
    int touches = 0;    // calls that touch it
    int seen = 0;       // up to now, this one counted
    int open = 0;       // messages under way before this call
    size_t before = 0;  // the call that touched it last
  };

  // What is of the step belongs to its last micro-batch.
  Instance* instance(BufferId root, const Call& call) {
    const int kept = roots_[static_cast<size_t>(root)].kept;
    if (kept < 0) return nullptr;
    const int64_t m = call.micro_batch < 0 ? last_ : call.micro_batch;
    return &instances_[static_cast<size_t>(kept) * static_cast<size_t>(last_ + 1) + static_cast<size_t>(m)];
  }

  void read(int b) {
    const Body& body = p_.bodies[static_cast<size_t>(b)];
    const auto length = static_cast<int>(body.instructions.size());
    std::vector<Use>& uses = uses_[static_cast<size_t>(b)];
    std::map<BufferId, size_t> place;
    const auto touch = [&](BufferId id, int at) -> Use* {
      if (id == kNoBuffer) return nullptr;
      const BufferId root = p_.root(id);
      if (p_.buffer(root).region != Region::arena) return nullptr;
      const auto [known, fresh] = place.try_emplace(root, uses.size());
      if (fresh) {
        uses.push_back({.root = root, .touched = {at, at}});
        roots_[static_cast<size_t>(root)].bases.insert(p_.base(b));
      }
      uses[known->second].touched.end = at;
      return &uses[known->second];
    };
    std::map<int, int> ends;  // by event: the wait for it
    std::set<int> starts;
    for (int at = 0; at < length; ++at) {
      const Instruction& i = body.instructions[static_cast<size_t>(at)];
      if (i.kind == Kind::wait) ends[i.event] = at;
      if (i.kind == Kind::collective) starts.insert(i.event);
    }
    for (int at = 0; at < length; ++at) {
      const Instruction& i = body.instructions[static_cast<size_t>(at)];
      const bool computes = i.kind == Kind::compute;
      Range way = {at, at};
      if (i.kind == Kind::collective && i.event >= 0) way.end = ends.contains(i.event) ? ends[i.event] : length - 1;
      const bool waits = i.kind == Kind::wait && !starts.contains(i.event);
      const bool opens = i.kind == Kind::collective && i.event >= 0 && !ends.contains(i.event);
      if (waits) way.begin = 0;
      const auto note = [&](BufferId id, bool writes) {
        Use* use = touch(id, at);
        if (!use) return;
        Root& r = roots_[static_cast<size_t>(use->root)];
        (computes ? (writes ? r.computed : r.read) : (writes ? r.received : r.sent)) = true;
        if (computes || (i.kind == Kind::wait && !waits)) return;
        join(use->under_way, way);
        use->waits |= waits;
        use->open += opens ? 1 : waits ? -1 : 0;
      };
      for (BufferId id : i.ins) note(id, false);
      for (BufferId id : i.outs) note(id, true);
      if (Use* use = touch(i.workspace, at)) roots_[static_cast<size_t>(use->root)].workspace = true;
    }
  }

  static void join(std::vector<Range>& list, Range r) {
    std::erase_if(list, [&](const Range& other) {
      if (other.begin > r.end + 1 || r.begin > other.end + 1) return false;
      r = {std::min(r.begin, other.begin), std::max(r.end, other.end)};
      return true;
    });
    list.insert(
        std::upper_bound(list.begin(), list.end(), r, [](const Range& a, const Range& b) { return a.begin < b.begin; }),
        r);
  }

  bool only_sent(const Root& r) const { return r.sent && !r.read; }
  bool only_received(const Root& r) const { return r.received && !r.computed; }

  // Calls f with every use of a call and how far its instance has come.
  template <typename F>
  void each(size_t c, F&& f) {
    const Call& call = list_.calls[c];
    for (const Use& use : uses_[static_cast<size_t>(call.body)]) {
      Instance alone = {.touches = 1};
      Instance* kept = instance(use.root, call);
      Instance& i = kept ? *kept : alone;
      ++i.seen;
      f(use, i);
      i.before = c;
      i.open += use.open;
    }
  }

  enum class What { activation, communication, workspace };

  Live bytes_of(BufferId root, What what) const {
    const int64_t bytes = p_.buffer(root).bytes();
    Live live = {.aligned = aligned(bytes)};
    (what == What::workspace       ? live.workspace
     : what == What::communication ? live.communication
                                   : live.activations) = bytes;
    return live;
  }

  // What lives during calls that do not touch it, as changes from call to call.
  void find_between() {
    between_.assign(list_.calls.size() + 1, {});
    const auto live = [&](BufferId root, size_t begin, size_t end, What what) {
      if (begin >= end) return;
      add(between_[begin], bytes_of(root, what));
      add(between_[end], bytes_of(root, what), -1);
    };
    for (size_t c = 0; c < list_.calls.size(); ++c)
      each(c, [&](const Use& use, const Instance& i) {
        const Root& r = roots_[static_cast<size_t>(use.root)];
        const bool moves = only_sent(r) || i.open > 0;
        if (i.seen > 1) live(use.root, i.before + 1, c, moves ? What::communication : What::activation);
        if (i.seen == i.touches && stays(use.root, list_.calls[c]))
          live(use.root, c + 1, list_.calls.size(), What::activation);
      });
    for (Instance& i : instances_) i = {.touches = i.touches};
  }

  // What the run reads when all calls are done.
  bool stays(BufferId root, const Call& call) const {
    return !p_.buffer(root).output.empty() && (call.micro_batch < 0 || call.micro_batch == last_);
  }

  void within(const Use& use, const Instance& i, const Call& call, int length, std::vector<Live>& during) const {
    const Root& r = roots_[static_cast<size_t>(use.root)];
    const bool begins = i.seen == 1 && p_.buffer(use.root).input.empty();
    const bool ends = i.seen == i.touches && !stays(use.root, call);
    const Range life = {begins ? use.touched.begin : 0, ends ? use.touched.end : length - 1};
    const auto live = [&](Range range, What what) {
      range = {std::max(range.begin, life.begin), std::min(range.end, life.end)};
      if (range.begin > range.end) return;
      add(during[static_cast<size_t>(range.begin)], bytes_of(use.root, what));
      add(during[static_cast<size_t>(range.end) + 1], bytes_of(use.root, what), -1);
    };
    if (r.workspace) return live(life, What::workspace);
    const bool moving = !use.under_way.empty() || i.open > 0;
    if (only_sent(r) || (only_received(r) && moving) || (i.open > 0 && !use.waits))
      return live(life, What::communication);
    int at = life.begin;
    for (const Range& way : use.under_way) {
      live({at, way.begin - 1}, What::activation);
      live(way, What::communication);
      at = way.end + 1;
    }
    live({at, life.end}, What::activation);
  }

  const Program& p_;
  const CallList& list_;
  int64_t last_ = 0;
  std::vector<std::vector<Use>> uses_;  // by body
  std::vector<Root> roots_;             // by buffer
  std::vector<Instance> instances_;     // of roots that are kept, by micro-batch
  std::vector<Live> between_;
};

}  // namespace

std::vector<Moment> memory_over(const Program& p, const CallList& list, size_t most) {
  size_t instants = 0;
  for (const Call& call : list.calls) instants += p.bodies[static_cast<size_t>(call.body)].instructions.size();
  const bool all = instants <= most;
  const size_t group = (list.calls.size() + std::max<size_t>(most, 1) - 1) / std::max<size_t>(most, 1);
  std::vector<Moment> moments;
  MemoryWalk(p, list).run([&](size_t call, const std::vector<Live>& during) {
    for (size_t at = 0; at < during.size(); ++at) {
      const Moment now = {call, at, during[at]};
      if (all || moments.empty() || (at == 0 && moments.back().call / group != call / group)) {
        moments.push_back(now);
      } else if (now.live.aligned > moments.back().live.aligned) {
        moments.back() = now;
      }
    }
  });
  return moments;
}

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
    const int64_t bytes = p.buffer(root).bytes();
    entry_of(t, s.kind) += bytes;
  }
  const int64_t states = t.weights + t.gradients + t.optimizer + t.caches + t.statistics;
  const CallList& list = largest_list(p);
  for (const Moment& m : memory_over(p, list, list.calls.size()))
    if (m.live.aligned > t.peak.live.aligned) t.peak = m;
  const Live& live = t.peak.live;
  t.activations = live.activations;
  t.communication = live.communication;
  t.workspace = live.workspace;
  base::require(live.aligned <= list.arena_bytes && states <= p.state_bytes, "memory",
                "{} lives at one time in {} of {} bytes, and {} bytes of states in {}", live.aligned, name_of(list.step),
                list.arena_bytes, states, p.state_bytes);
  t.packing = (p.state_bytes - states) + (list.arena_bytes - live.sum());
  t.others = p.arena_bytes - list.arena_bytes;
  return t;
}

Held held(const Program& p) {
  Held h;
  std::set<int> layers;
  for (const StateInfo& s : p.states) {
    if (s.kind != StateKind::weight || s.replica) continue;
    layers.insert(s.layer);
    h.parameters += s.whole.shape.elements();
  }
  h.layers.assign(layers.begin(), layers.end());
  return h;
}

}  // namespace kintsugi::program
