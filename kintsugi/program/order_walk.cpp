#include "kintsugi/program/order_walk.h"

#include <algorithm>

namespace kintsugi::program {

bool conflict(const std::vector<Touch>& a, const std::vector<Touch>& b) {
  return std::ranges::any_of(
      a, [&](const Touch& x) { return std::ranges::any_of(b, [&](const Touch& y) { return conflict(x, y); }); });
}

Touches::Touches(const Program& p) : ranges_(byte_ranges(p)) {
  for (const Body& body : p.bodies) {
    std::vector<std::vector<Touch>>& instructions = bodies_.emplace_back();
    for (const Instruction& i : body.instructions) {
      std::vector<Touch>& touches = instructions.emplace_back();
      const auto add = [&](BufferId id, bool written) {
        if (p.buffer(p.root(id)).region != Region::file && p.buffer(id).bytes() > 0)
          touches.push_back({ranges_[static_cast<size_t>(id)], written});
      };
      for (const BufferId id : i.ins) add(id, false);
      for (const BufferId id : i.outs) add(id, true);
      if (i.workspace != kNoBuffer) add(i.workspace, true);
    }
  }
}

void Touches::get(size_t instruction, const CallList& list, const Call& call, std::vector<Touch>& touches) const {
  touches = bodies_[static_cast<size_t>(call.body)][instruction];
  for (Touch& t : touches) t.bytes = in_slot(t.bytes, list, call.slot);
}

bool StreamTouches::must_wait(int queue, const std::vector<Touch>& operation) {
  const auto known = std::ranges::find(known_, queue, &std::pair<int, size_t>::first);
  if (known == known_.end()) {
    known_.emplace_back(queue, all_.size());
    return true;
  }
  const bool touched =
      std::any_of(all_.begin() + static_cast<std::ptrdiff_t>(known->second), all_.end(), [&](const Touch& earlier) {
        return std::ranges::any_of(operation, [&](const Touch& t) { return conflict(earlier, t); });
      });
  if (touched) known->second = all_.size();
  return touched;
}

}  // namespace kintsugi::program
