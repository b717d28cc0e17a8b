#include "kintsugi/program/order_walk.h"

#include <algorithm>

namespace kintsugi::program {

bool conflict(const std::vector<Touch>& a, const std::vector<Touch>& b) {
  return std::ranges::any_of(
      a, [&](const Touch& x) { return std::ranges::any_of(b, [&](const Touch& y) { return conflict(x, y); }); });
}

std::vector<Touch> Touches::of(const Instruction& i, const CallList& list, const Call& call) const {
  std::vector<Touch> touches;
  const auto add = [&](BufferId id, bool written) {
    if (p_.buffer(p_.root(id)).region != Region::file && p_.buffer(id).bytes() > 0)
      touches.push_back(of(id, written, list, call));
  };
  for (const BufferId id : i.ins) add(id, false);
  for (const BufferId id : i.outs) add(id, true);
  if (i.workspace != kNoBuffer) add(i.workspace, true);
  return touches;
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
