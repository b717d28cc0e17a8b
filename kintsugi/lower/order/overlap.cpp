#include "kintsugi/lower/order/overlap.h"

#include <algorithm>
#include <map>
#include <set>

#include "kintsugi/program/halo.h"
#include "kintsugi/program/order.h"
#include "kintsugi/program/under_way.h"
#include "kintsugi/tensor/dims.h"

namespace kintsugi::lower {

using program::Body;
using program::BufferId;
using program::Collective;
using program::Instruction;
using program::Kind;
using program::Program;
using program::touches;

namespace {

constexpr const char* kSums = "gradient sums";

bool gathers_state(const Program& p, const Instruction& i) {
  return starts(i, Collective::all_gather) && p.buffer(p.root(i.ins[0])).region == program::Region::state &&
         p.buffer(p.root(i.outs[0])).region == program::Region::arena;
}

void prefetch_in(const Program& p, std::vector<Instruction>& list) {
  for (size_t at = 0; at < list.size(); ++at) {
    if (!gathers_state(p, list[at])) continue;
    size_t to = at;
    const auto may_pass = [&](const Instruction& i) { return !in_order(p, i, list[at]); };
    while (to > 0 && list[to - 1].layer == list[at].layer && may_pass(list[to - 1]))
      --to;  // to the beginning of its layer
    const int before = to > 0 ? list[to - 1].layer : list[at].layer;
    while (to > 0 && list[to - 1].layer == before && !gathers_state(p, list[to - 1]) && may_pass(list[to - 1])) --to;
    std::rotate(list.begin() + static_cast<std::ptrdiff_t>(to), list.begin() + static_cast<std::ptrdiff_t>(at),
                list.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

bool is_reduction(const Instruction& i) {
  return is_collective(i) && reduces(i);
}

// Moves an instruction to the end of the next layer, as far as no instruction in between touches its buffers. Gathers
// that were moved ahead belong to neither layer.
void move_down(const Program& p, std::vector<Instruction>& list, size_t at) {
  size_t to = at;
  const auto pass = [&](int layer) {
    for (; to + 1 < list.size(); ++to) {
      const Instruction& i = list[to + 1];
      if ((i.layer != layer && !gathers_state(p, i)) || in_order(p, i, list[at])) return;
    }
  };
  pass(list[at].layer);
  if (to + 1 < list.size()) pass(list[to + 1].layer);
  std::rotate(list.begin() + static_cast<std::ptrdiff_t>(at), list.begin() + static_cast<std::ptrdiff_t>(at) + 1,
              list.begin() + static_cast<std::ptrdiff_t>(to) + 1);
}

void postpone_in(const Program& p, std::vector<Instruction>& list, const graph::OpTable& operations) {
  // The instruction before `at` that produced its operand; list.size() if there is none.
  const auto maker = [&](size_t at) {
    for (size_t i = at; i-- > 0;)
      if (touches(p, list[i].outs, list[at].ins)) return i;
    return list.size();
  };
  for (size_t at = list.size(); at-- > 0;) {
    if (list[at].kind != Kind::compute || operations.find(list[at].kernel).role != graph::Role::accumulate ||
        p.buffer(p.root(list[at].outs[0])).region != program::Region::state)
      continue;
    const size_t made = maker(at);
    if (made == list.size()) continue;
    const bool widened =  // from the wire dtype
        list[made].kind == Kind::compute && operations.find(list[made].kernel).converts_dtype;
    const size_t reduced = widened ? maker(made) : made;
    if (reduced == list.size() || !is_reduction(list[reduced])) continue;
    move_down(p, list, at);
    if (widened) move_down(p, list, made);
  }
}

}  // namespace

void prefetch(Program& p, const graph::OpTable& operations) {
  for (Body& body : p.bodies) {
    prefetch_in(p, body.instructions);
    postpone_in(p, body.instructions, operations);
  }
}

namespace {

bool is_send(const Instruction& i) {
  return starts(i, Collective::send);
}

bool is_receive(const Instruction& i) {
  return starts(i, Collective::receive);
}

// A reduction of a step, which nothing before the update needs.
bool is_sum_of_step(const Body& body, const Instruction& i) {
  const bool is_pass = body.does(program::Work::backward) || body.does(program::Work::weight);
  return is_pass && i.phase == program::Phase::update && is_reduction(i);
}

// Whether ranks of a group hold the same weights, or shards of them.
bool replicates_weights(const Program& p, const std::vector<mesh::Factor>& group) {
  return std::ranges::none_of(p.states, [&](const program::StateInfo& s) {
    return s.kind == program::StateKind::weight &&
           std::ranges::any_of(s.layout.splits(), [&](const mesh::Split& split) {
             return split.dim != tensor::kFlat &&
                    std::ranges::find_first_of(split.factors, group) != split.factors.end();
           });
  });
}

// Gives gradient sums over replicas a separate queue if other collectives of a pass use the same group. Without data
// parallelism, the ranks that split a sequence or an image also sum the gradients, and in one queue the exchanges of
// the next layer would wait for the sums of this one. Gathers of ZeRO-3 remain in the queue of the sums: they
// alternate.
void separate_sums(Program& p) {
  std::set<std::vector<mesh::Factor>> used;
  for (const Body& body : p.bodies)
    for (const Instruction& i : body.instructions)
      if (i.kind == Kind::collective && i.peer < 0 && !body.does(program::Work::update) && !is_sum_of_step(body, i) &&
          i.phase != program::Phase::update && !gathers_state(p, i))
        used.insert(i.group);
  for (auto at = used.begin(); at != used.end();) at = replicates_weights(p, *at) ? std::next(at) : used.erase(at);
  for (Body& body : p.bodies)
    for (Instruction& i : body.instructions)
      if (is_sum_of_step(body, i) && i.peer < 0 && used.contains(i.group)) i.channel = kSums;
}

// Starts a send as soon as its value has been produced.
void hoist_sends(const Program& p, std::vector<Instruction>& list) {
  for (size_t at = 0; at < list.size(); ++at) {
    if (!is_send(list[at])) continue;
    size_t to = at;
    const auto stays = [&](const Instruction& i) {
      return in_order(p, i, list[at]) || ((is_send(i) || is_receive(i)) && i.channel == list[at].channel);
    };
    while (to > 0 && !stays(list[to - 1])) --to;
    std::rotate(list.begin() + static_cast<std::ptrdiff_t>(to), list.begin() + static_cast<std::ptrdiff_t>(at),
                list.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

// Packs and sends rows of a halo as soon as their block has been produced, overlapping with the rest of the gradient.
void hoist_halos(const Program& p, std::vector<Instruction>& list) {
  for (size_t at = 0; at < list.size(); ++at) {
    if (!starts(list[at], Collective::halo) && !program::packs_halo(p, list[at])) continue;
    size_t to = at;
    while (to > 0 && !in_order(p, list[to - 1], list[at])) --to;
    std::rotate(list.begin() + static_cast<std::ptrdiff_t>(to), list.begin() + static_cast<std::ptrdiff_t>(at),
                list.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

// Whether an instruction needs the rows that a halo exchange received.
bool needs_halo(const Program& p, const Instruction& i) {
  return i.kind == Kind::compute && i.cuts.exchanges && i.ins.size() > 1 && !program::packs_halo(p, i);
}

// Computes products of the layer that do not depend on an exchange before what waits for it, such as the convolution of
// a residual's shortcut while rows for its branch travel.
void advance_products(const Program& p, std::vector<Instruction>& list) {
  for (size_t at = 0; at < list.size(); ++at) {
    if (!needs_halo(p, list[at])) continue;
    for (size_t from = at + 1; from < list.size() && list[from].layer == list[at].layer; ++from) {
      const Instruction& product = list[from];
      const auto passes = [&](const Instruction& i) { return !in_order(p, i, product); };
      if (product.kind != Kind::compute || product.cost.cost_class != tensor::CostClass::product ||
          !std::all_of(list.begin() + static_cast<std::ptrdiff_t>(at), list.begin() + static_cast<std::ptrdiff_t>(from),
                       passes))
        continue;
      std::rotate(list.begin() + static_cast<std::ptrdiff_t>(at), list.begin() + static_cast<std::ptrdiff_t>(from),
                  list.begin() + static_cast<std::ptrdiff_t>(from) + 1);
      ++at;
    }
  }
}

// For each body: the one that starts its receives, and those that wait for its sends and its reductions; -1: none.
struct Beside {
  int receive = -1, sent = -1, summed = -1;
};

class Overlap {
 public:
  explicit Overlap(Program& p) : p_(p) {}

  void run() {
    separate_sums(p_);
    const size_t bodies = p_.bodies.size();
    for (size_t b = 0; b < bodies; ++b) {
      hoist_sends(p_, p_.bodies[b].instructions);
      hoist_halos(p_, p_.bodies[b].instructions);
      advance_products(p_, p_.bodies[b].instructions);
      Body receive, sent, summed;
      take_apart(p_.bodies[b], receive, sent, summed);
      beside_.push_back({});
      beside_[b].receive = add(std::move(receive), b, program::Role::receives, &Beside::receive);
      beside_[b].sent = add(std::move(sent), b, program::Role::waits_for_sent, &Beside::sent);
      beside_[b].summed = add(std::move(summed), b, program::Role::waits_for_sums, &Beside::summed);
    }
    for (program::CallList& list : p_.lists) spread(list);
  }

 private:
  // A message has the same event in all variants of a body.
  int event_of(const Instruction& i) {
    if (!is_send(i) && !is_receive(i)) return events_++;
    const auto [at, fresh] = messages_.try_emplace({i.channel, i.ins.empty() ? i.outs[0] : i.ins[0]}, events_);
    if (fresh) ++events_;
    return at->second;
  }

  // Of the receives of a channel the first is started ahead, each later one when the previous has completed: on a
  // device it could not start sooner, and would hold back everything after it, including what the peer waits for
  // (verify_ranks).
  void take_apart(Body& body, Body& receive, Body& sent, Body& summed) {
    std::vector<Instruction> list;
    program::UnderWay under_way(p_);
    std::map<std::string, int> received;  // [channel]: the last started
    const auto begin = [&](Instruction& i) {
      i.event = event_of(i);
      const int number = under_way.add(i);
      if (is_receive(i)) received[i.channel] = number;
    };
    const auto is_ahead = [&](const Instruction& i) { return is_receive(i) && i.event >= 0; };
    for (Instruction& i : body.instructions) {
      if (!is_receive(i) || received.contains(i.channel)) continue;
      begin(i);
      receive.instructions.push_back(i);
    }
    const auto wait_for = [&](int number) { list.push_back(program::wait_for(under_way.remove(number))); };
    for (Instruction& i : body.instructions) {
      if (is_ahead(i)) continue;
      for (int number : under_way.near(i)) {
        const Instruction& other = under_way[number];
        if (in_order(p_, i, other) || (i.workspace >= 0 && touches(p_, {i.workspace}, other.outs))) wait_for(number);
      }
      if (is_receive(i) && under_way.list().contains(received.at(i.channel))) wait_for(received.at(i.channel));
      if (i.kind == Kind::collective) begin(i);
      list.push_back(std::move(i));
    }
    for (const auto& [number, i] : under_way.list())
      (is_send(i)                ? sent.instructions
       : is_sum_of_step(body, i) ? summed.instructions
                                 : list)
          .push_back(program::wait_for(i));
    body.instructions = std::move(list);
  }

  // Adds a body that complements another; variants share one if they can.
  int add(Body made, size_t of, program::Role role, int Beside::*which) {
    if (made.instructions.empty()) return -1;
    const Body& body = p_.bodies[of];
    const int base = body.variant_of < 0 ? -1 : beside_[static_cast<size_t>(body.variant_of)].*which;
    const auto same = [&](const Instruction& a, const Instruction& b) { return a.event == b.event; };
    if (base >= 0) {
      const std::vector<Instruction>& known = p_.bodies[static_cast<size_t>(base)].instructions;
      if (std::equal(known.begin(), known.end(), made.instructions.begin(), made.instructions.end(), same)) return base;
    }
    made.name = body.name + suffix_of(role);
    made.work = body.work;
    made.role = role;
    made.chunk = body.chunk;
    made.stage = body.stage;
    made.variant_of = base;
    p_.bodies.push_back(std::move(made));
    return static_cast<int>(p_.bodies.size()) - 1;
  }

  static const char* suffix_of(program::Role role) {
    switch (role) {
      case program::Role::work:
        return "";
      case program::Role::receives:
        return ".receive";
      case program::Role::waits_for_sent:
        return ".sent";
      case program::Role::waits_for_sums:
        return ".summed";
    }
    return "";
  }

  // Starts the receives of a call before the previous call, unless that still starts some of their channel; waits for
  // its sends after the next call, and for its reductions before the update.
  void spread(program::CallList& list) const {
    std::vector<program::Call> calls;
    const auto body_of = [&](size_t call, int Beside::*which) {
      return call < list.calls.size() ? beside_[static_cast<size_t>(list.calls[call].body)].*which : -1;
    };
    const auto add = [&](size_t call, int Beside::*which) {
      if (const int body = body_of(call, which); body >= 0) calls.push_back({body, list.calls[call].micro_batch});
    };
    std::vector<program::Call> sums;  // still in flight
    const auto receives_first = [&](size_t call) {
      return body_of(call + 1, &Beside::receive) >= 0 &&
             share_a_channel(p_.bodies[static_cast<size_t>(list.calls[call].body)],
                             p_.bodies[static_cast<size_t>(body_of(call + 1, &Beside::receive))]);
    };
    add(0, &Beside::receive);
    for (size_t c = 0; c < list.calls.size(); ++c) {
      const bool ahead = !receives_first(c);
      if (ahead) add(c + 1, &Beside::receive);
      if (p_.bodies[static_cast<size_t>(list.calls[c].body)].does(program::Work::update)) {
        calls.insert(calls.end(), sums.begin(), sums.end());
        sums.clear();
      }
      calls.push_back(list.calls[c]);
      if (const int body = body_of(c, &Beside::summed); body >= 0) sums.push_back({body, list.calls[c].micro_batch});
      if (!ahead) add(c + 1, &Beside::receive);
      if (c > 0) add(c - 1, &Beside::sent);
    }
    add(list.calls.size() - 1, &Beside::sent);
    calls.insert(calls.end(), sums.begin(), sums.end());
    list.calls = std::move(calls);
  }

  // Whether both start receives of one channel.
  static bool share_a_channel(const Body& a, const Body& b) {
    for (const Instruction& i : a.instructions)
      for (const Instruction& j : b.instructions)
        if (is_receive(i) && is_receive(j) && i.channel == j.channel) return true;
    return false;
  }

  Program& p_;
  int events_ = 0;
  std::map<std::pair<std::string, program::BufferId>, int> messages_;
  std::vector<Beside> beside_;
};

}  // namespace

void overlap(Program& p) {
  Overlap(p).run();
}

}  // namespace kintsugi::lower
