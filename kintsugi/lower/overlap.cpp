#include "kintsugi/lower/overlap.h"

#include <algorithm>

#include "kintsugi/program/order.h"

namespace kintsugi::lower {

using program::Body;
using program::BufferId;
using program::Instruction;
using program::Kind;
using program::Program;
using program::touches;

namespace {

bool gathers_state(const Program& p, const Instruction& i) {
  return i.kind == Kind::collective && i.kernel == "all_gather" &&
         p.buffer(p.root(i.ins[0])).region == program::Region::state &&
         p.buffer(p.root(i.outs[0])).region == program::Region::arena;
}

void prefetch_in(const Program& p, std::vector<Instruction>& list) {
  for (size_t at = 0; at < list.size(); ++at) {
    if (!gathers_state(p, list[at])) continue;
    size_t to = at;
    const auto may_pass = [&](const Instruction& i) { return !in_order(p, i, list[at]); };
    while (to > 0 && list[to - 1].layer == list[at].layer && may_pass(list[to - 1])) --to;  // to the begin of its layer
    const int before = to > 0 ? list[to - 1].layer : list[at].layer;
    while (to > 0 && list[to - 1].layer == before && !gathers_state(p, list[to - 1]) && may_pass(list[to - 1])) --to;
    std::rotate(list.begin() + static_cast<std::ptrdiff_t>(to), list.begin() + static_cast<std::ptrdiff_t>(at),
                list.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

bool is_reduction(const Instruction& i) {
  return i.kind == Kind::collective && (i.kernel == "reduce_scatter" || i.kernel == "all_reduce");
}

// Moves an instruction to the end of the next layer's, as far as it touches nothing on its way. Gathers that went ahead
// are of neither layer.
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

void postpone_in(const Program& p, std::vector<Instruction>& list) {
  // The instruction before `at` that made its operand; list.size() where there is none.
  const auto maker = [&](size_t at) {
    for (size_t i = at; i-- > 0;)
      if (touches(p, list[i].outs, list[at].ins)) return i;
    return list.size();
  };
  for (size_t at = list.size(); at-- > 0;) {
    if (list[at].kernel != "accumulate" || p.buffer(p.root(list[at].outs[0])).region != program::Region::state)
      continue;
    const size_t made = maker(at);
    if (made == list.size()) continue;
    const bool widened = list[made].kernel == "cast";  // from the dtype of the wire
    const size_t reduced = widened ? maker(made) : made;
    if (reduced == list.size() || !is_reduction(list[reduced])) continue;
    move_down(p, list, at);
    if (widened) move_down(p, list, made);
  }
}

}  // namespace

void prefetch(Program& p) {
  for (Body& body : p.bodies) {
    prefetch_in(p, body.instructions);
    postpone_in(p, body.instructions);
  }
}

void overlap(Program& p) {
  int events = 0;
  for (Body& body : p.bodies) {
    std::vector<Instruction> list, pending;
    const auto wait_for = [&](size_t i) {
      Instruction w = pending[i];
      w.kind = Kind::wait;
      w.bytes = 0;
      list.push_back(std::move(w));
      pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i));
    };
    for (Instruction& i : body.instructions) {
      for (size_t c = 0; c < pending.size();) {
        const bool needs =
            in_order(p, i, pending[c]) || (i.workspace >= 0 && touches(p, {i.workspace}, pending[c].outs));
        if (needs) {
          wait_for(c);
        } else {
          ++c;
        }
      }
      if (i.kind == Kind::collective) {
        i.event = events++;
        pending.push_back(i);
      }
      list.push_back(std::move(i));
    }
    while (!pending.empty()) wait_for(0);
    body.instructions = std::move(list);
  }
}

}  // namespace kintsugi::lower
