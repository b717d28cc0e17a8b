#include "kintsugi/program/live_bytes.h"

#include <algorithm>
#include <functional>
#include <set>

#include "kintsugi/program/arena_use.h"
#include "kintsugi/program/walk.h"

namespace kintsugi::program {
namespace {

enum class Purpose : uint8_t { activation, gradient, communication, workspace };

void add(LiveBytes& to, const LiveBytes& x, int64_t sign = 1) {
  to.activations += sign * x.activations;
  to.gradients += sign * x.gradients;
  to.communication += sign * x.communication;
  to.workspace += sign * x.workspace;
  to.aligned += sign * x.aligned;
}

// Sums the bytes of live values over the calls of a list. A root is one value, or, if several bodies touch it, one per
// micro-batch.
class LiveWalk {
 public:
  // Called for each call with the live bytes during each of its instructions.
  using Visit = std::function<void(size_t call, const std::vector<LiveBytes>&)>;

  LiveWalk(const Program& p, const CallList& list)
      : p_(p), list_(list), last_(last_micro_batch(list)), uses_(p.bodies.size()), roots_(p.buffers.size()) {
    for (const VisitedCall& call : first_calls(p, list)) read(call);
    for (const StateInfo& s : p.states)
      if (s.kind == StateKind::gradient) roots_[static_cast<size_t>(p.root(s.buffer))].gradient = true;
    int kept = 0;
    for (Root& root : roots_)
      if (root.bodies.size() > 1) root.kept = kept++;
    values_.resize(static_cast<size_t>(kept) * static_cast<size_t>(last_ + 1));
    for (const Call& call : list.calls)
      for (const ArenaUse& use : uses_of(call))
        if (Value* value = kept_value(use.root, call)) ++value->num_calls;
  }

  void run(const Visit& visit) {
    find_between();
    LiveBytes now;
    std::vector<LiveBytes> during;
    for (const auto& [position, call, body] : walk(p_, list_)) {
      add(now, between_[position]);
      if (body.instructions.empty()) continue;
      during.assign(body.instructions.size() + 1, {});
      during[0] = now;
      for_each_value(position, [&, &call = call](const ArenaUse& use, const Value& value) {
        add_within(use, value, call, during);
      });
      for (size_t at = 1; at < during.size(); ++at) add(during[at], during[at - 1]);
      during.pop_back();
      visit(position, during);
    }
  }

 private:
  struct Root {
    std::set<int> bodies;  // that touch it; variants counted once
    int kept = -1;         // index among those live across calls
    bool workspace = false;
    bool gradient = false;
    bool computed = false, read = false, received = false, sent = false;  // see ArenaUse

    bool only_sent() const { return sent && !read; }
    bool only_received() const { return received && !computed; }
    // Purpose while it is not communicated.
    Purpose purpose() const { return gradient ? Purpose::gradient : Purpose::activation; }
  };
  struct Value {
    int num_calls = 0;     // calls that touch it
    int num_seen = 0;      // of them so far, including this one
    int num_messages = 0;  // in flight before this call
    size_t last_call = 0;  // last call that touched it
  };

  void read(const VisitedCall& call) {
    std::vector<ArenaUse>& uses = uses_[static_cast<size_t>(call.call.body)] = arena_uses(p_, call.body);
    for (const ArenaUse& use : uses) {
      Root& root = roots_[static_cast<size_t>(use.root)];
      root.bodies.insert(p_.base(call.call.body));
      root.workspace |= use.workspace;
      root.computed |= use.computed;
      root.read |= use.read;
      root.received |= use.received;
      root.sent |= use.sent;
    }
  }

  const std::vector<ArenaUse>& uses_of(const Call& call) const { return uses_[static_cast<size_t>(call.body)]; }
  const Root& root(BufferId id) const { return roots_[static_cast<size_t>(id)]; }

  // Null for values live within one body only. Values of the step belong to its last micro-batch.
  Value* kept_value(BufferId id, const Call& call) {
    const int kept = root(id).kept;
    if (kept < 0) return nullptr;
    const int64_t m = call.micro_batch < 0 ? last_ : call.micro_batch;
    return &values_[static_cast<size_t>(kept) * static_cast<size_t>(last_ + 1) + static_cast<size_t>(m)];
  }

  // Calls f(use, value) for every use in a call, with the state of the value at that use.
  template <typename F>
  void for_each_value(size_t position, F&& f) {
    const Call& call = list_.calls[position];
    for (const ArenaUse& use : uses_of(call)) {
      Value alone = {.num_calls = 1};
      Value* kept = kept_value(use.root, call);
      Value& value = kept ? *kept : alone;
      ++value.num_seen;
      f(use, value);
      value.last_call = position;
      value.num_messages += use.num_started;
    }
  }

  LiveBytes bytes_of(BufferId id, Purpose purpose) const {
    const int64_t bytes = p_.buffer(id).bytes();
    LiveBytes live = {.aligned = p_.aligned(bytes)};
    switch (purpose) {
      case Purpose::activation:
        live.activations = bytes;
        break;
      case Purpose::gradient:
        live.gradients = bytes;
        break;
      case Purpose::communication:
        live.communication = bytes;
        break;
      case Purpose::workspace:
        live.workspace = bytes;
        break;
    }
    return live;
  }

  // Values live during calls that do not touch them, as differences between calls.
  void find_between() {
    const size_t calls = list_.calls.size();
    between_.assign(calls + 1, {});
    const auto live = [&](BufferId id, size_t begin, size_t end, Purpose purpose) {
      if (begin >= end) return;
      add(between_[begin], bytes_of(id, purpose));
      add(between_[end], bytes_of(id, purpose), -1);
    };
    for (size_t c = 0; c < calls; ++c)
      for_each_value(c, [&](const ArenaUse& use, const Value& value) {
        const bool in_transit = root(use.root).only_sent() || value.num_messages > 0;
        if (value.num_seen > 1)
          live(use.root, value.last_call + 1, c, in_transit ? Purpose::communication : root(use.root).purpose());
        if (value.num_seen == value.num_calls && is_result(use.root, list_.calls[c]))
          live(use.root, c + 1, calls, root(use.root).purpose());
      });
    for (Value& value : values_) value = {.num_calls = value.num_calls};
  }

  // Whether the run reads it after the last call.
  bool is_result(BufferId id, const Call& call) const {
    return !p_.buffer(id).output.empty() && (call.micro_batch < 0 || call.micro_batch == last_);
  }

  // Adds a value to the live bytes of a call that touches it, as differences between instructions.
  void add_within(const ArenaUse& use, const Value& value, const Call& call, std::vector<LiveBytes>& during) const {
    const Root& of = root(use.root);
    const bool begins = value.num_seen == 1 && p_.buffer(use.root).input.empty();
    const bool ends = value.num_seen == value.num_calls && !is_result(use.root, call);
    const int last = static_cast<int>(during.size()) - 2;
    const InstructionRange whole = {begins ? use.touched.begin : 0, ends ? use.touched.end : last};
    const auto live = [&](InstructionRange range, Purpose purpose) {
      range = {std::max(range.begin, whole.begin), std::min(range.end, whole.end)};
      if (range.begin > range.end) return;
      add(during[static_cast<size_t>(range.begin)], bytes_of(use.root, purpose));
      add(during[static_cast<size_t>(range.end) + 1], bytes_of(use.root, purpose), -1);
    };
    if (of.workspace) return live(whole, Purpose::workspace);
    const bool under_way = value.num_messages > 0;
    if (of.only_sent() || (of.only_received() && (under_way || !use.in_transit.empty())) || (under_way && !use.awaits))
      return live(whole, Purpose::communication);
    int next = whole.begin;
    for (const InstructionRange& range : use.in_transit) {
      live({next, range.begin - 1}, of.purpose());
      live(range, Purpose::communication);
      next = range.end + 1;
    }
    live({next, whole.end}, of.purpose());
  }

  const Program& p_;
  const CallList& list_;
  int64_t last_ = 0;
  std::vector<std::vector<ArenaUse>> uses_;  // [body]
  std::vector<Root> roots_;                  // [buffer]
  std::vector<Value> values_;                // of kept roots, by micro-batch
  std::vector<LiveBytes> between_;
};

}  // namespace

std::vector<Instant> memory_over(const Program& p, const CallList& list, size_t most) {
  const bool all = num_instructions(p, list) <= most;
  const size_t group = (list.calls.size() + std::max<size_t>(most, 1) - 1) / std::max<size_t>(most, 1);
  std::vector<Instant> instants;
  LiveWalk(p, list).run([&](size_t call, const std::vector<LiveBytes>& during) {
    for (size_t at = 0; at < during.size(); ++at) {
      const Instant now = {call, at, during[at]};
      if (all || instants.empty() || (at == 0 && instants.back().call / group != call / group)) {
        instants.push_back(now);
      } else if (now.live.aligned > instants.back().live.aligned) {
        instants.back() = now;
      }
    }
  });
  return instants;
}

}  // namespace kintsugi::program
