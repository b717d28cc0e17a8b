#include "kintsugi/lower/slots_share.h"

#include <algorithm>

#include "kintsugi/lower/live_ranges.h"
#include "kintsugi/lower/slots_liveness.h"

namespace kintsugi::lower {

using program::BufferId;
using program::Instruction;
using program::Program;

namespace {

bool touches(const Program& p, const std::vector<BufferId>& operands, BufferId root) {
  return std::any_of(operands.begin(), operands.end(), [&](BufferId b) { return p.root(b) == root; });
}

// By root: the bodies that make it.
std::vector<std::vector<int>> makers_of(const Program& p) {
  std::vector<std::vector<int>> makers(p.buffers.size());
  for (int body = 0; body < static_cast<int>(p.bodies.size()); ++body)
    for (const Instruction& i : p.bodies[static_cast<size_t>(body)].instructions)
      for (BufferId b : i.outs) {
        std::vector<int>& list = makers[static_cast<size_t>(p.root(b))];
        if (list.empty() || list.back() != body) list.push_back(body);
      }
  return makers;
}

// Whether in each of the bodies, which make `to`, nothing touches `from` afterwards except the instruction that makes
// `to` and the wait for it.
bool is_last_use(const Program& p, const std::vector<int>& makers, BufferId from, BufferId to) {
  for (int body : makers) {
    bool made = false;
    for (const Instruction& i : p.bodies[static_cast<size_t>(body)].instructions) {
      const bool makes = touches(p, i.outs, to);
      if (made && !makes && (touches(p, i.ins, from) || touches(p, i.outs, from))) return false;
      made |= makes;
    }
  }
  return true;
}

}  // namespace

void share_between_calls(Program& p, const program::CallList& list, const graph::OpTable& operations) {
  const std::vector<int> bodies = bodies_of_last_micro_batch(list);
  const std::vector<std::vector<size_t>> touching = bodies_touching(p, bodies);
  const std::vector<std::vector<int>> makers = makers_of(p);
  const auto waits = [&](size_t at) {
    return p.bodies[static_cast<size_t>(bodies[at])].role == program::Role::waits_for_sent;
  };
  share_in_place(p, instructions_of(p, bodies), operations, [&](BufferId from, BufferId to) {
    const std::vector<size_t>&x = touching[static_cast<size_t>(from)], &y = touching[static_cast<size_t>(to)];
    return std::includes(x.begin(), x.end(), y.begin(), y.end()) && std::none_of(x.begin(), x.end(), waits) &&
           is_last_use(p, makers[static_cast<size_t>(to)], from, to);
  });
}

}  // namespace kintsugi::lower
