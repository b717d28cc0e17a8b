#include "kintsugi/lower/memory/slots_share.h"

#include <algorithm>
#include <compare>
#include <iterator>

#include "kintsugi/lower/memory/live_ranges.h"
#include "kintsugi/lower/memory/slots_liveness.h"
#include "kintsugi/program/order.h"

namespace kintsugi::lower {

using program::BufferId;
using program::Instruction;
using program::Program;

namespace {

// Position of an instruction.
struct Spot {
  int body = 0;
  size_t at = 0;  // index in the body

  auto operator<=>(const Spot&) const = default;
};

// [root]: the instructions that produce it and those that touch it, in order.
class LastUses {
 public:
  explicit LastUses(const Program& p) : makers_(p.buffers.size()), touches_(p.buffers.size()) {
    for (size_t body = 0; body < p.bodies.size(); ++body)
      for (size_t at = 0; at < p.bodies[body].instructions.size(); ++at) {
        const Instruction& i = p.bodies[body].instructions[at];
        const Spot spot = {static_cast<int>(body), at};
        for (BufferId b : i.outs) add(makers_[index(p.root(b))], spot);
        for (BufferId root : program::roots_of(p, i)) touches_[index(root)].push_back(spot);
      }
  }

  // Whether in each body that produces `to`, nothing touches `from` afterwards except the instructions that produce
  // `to` (and the wait for it).
  bool is_last(BufferId from, BufferId to) const {
    const std::vector<Spot>&makers = makers_[index(to)], &touches = touches_[index(from)];
    for (size_t m = 0; m < makers.size(); ++m) {
      if (m > 0 && makers[m].body == makers[m - 1].body) continue;  // only the first in each body
      for (auto t = std::upper_bound(touches.begin(), touches.end(), makers[m]);
           t != touches.end() && t->body == makers[m].body; ++t)
        if (!std::binary_search(makers.begin(), makers.end(), *t)) return false;
    }
    return true;
  }

  // Merges `to` into `from`.
  void share(BufferId from, BufferId to) {
    merge(makers_[index(from)], makers_[index(to)]);
    merge(touches_[index(from)], touches_[index(to)]);
  }

 private:
  static size_t index(BufferId b) { return static_cast<size_t>(b); }
  static void add(std::vector<Spot>& list, Spot spot) {
    if (list.empty() || list.back() != spot) list.push_back(spot);
  }
  static void merge(std::vector<Spot>& into, std::vector<Spot>& from) {
    std::vector<Spot> all;
    std::set_union(into.begin(), into.end(), from.begin(), from.end(), std::back_inserter(all));
    into = std::move(all);
    from.clear();
  }

  std::vector<std::vector<Spot>> makers_, touches_;  // [buffer], for roots only
};

}  // namespace

void share_between_calls(Program& p, const program::CallList& list, const graph::OpTable& operations) {
  const std::vector<int> bodies = bodies_of_last_micro_batch(list);
  const std::vector<std::vector<size_t>> touching = bodies_touching(p, bodies);
  LastUses uses(p);
  const auto waits = [&](size_t at) {
    return p.bodies[static_cast<size_t>(bodies[at])].role == program::Role::waits_for_sent;
  };
  const auto may = [&](BufferId from, BufferId to) {
    const std::vector<size_t>&x = touching[static_cast<size_t>(from)], &y = touching[static_cast<size_t>(to)];
    return std::includes(x.begin(), x.end(), y.begin(), y.end()) && std::none_of(x.begin(), x.end(), waits) &&
           uses.is_last(from, to);
  };
  const auto shared = [&](BufferId from, BufferId to) { uses.share(from, to); };
  share_in_place(p, instructions_of(p, bodies), operations, {.may = may, .shared = shared});
}

}  // namespace kintsugi::lower
