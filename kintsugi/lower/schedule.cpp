#include "kintsugi/lower/schedule.h"

#include <set>

namespace kintsugi::lower {

using program::Body;
using program::Program;

namespace {

int find(const Program& p, std::string_view name) {
  for (size_t i = 0; i < p.bodies.size(); ++i)
    if (p.bodies[i].name == name) return static_cast<int>(i);
  return -1;
}

// The first addition to each accumulator replaces what it held.
Body first_of(const Program& p, const Body& body, std::set<program::BufferId>& replaced) {
  Body first = body;
  first.name += ".first";
  for (program::Instruction& i : first.instructions)
    for (size_t j = 0; j < i.outs.size(); ++j)
      if (((i.accumulate >> j) & 1u) && replaced.insert(p.root(i.outs[j])).second) i.accumulate &= ~(1u << j);
  return first;
}

}  // namespace

void schedule(Program& p, int64_t micro_batches) {
  const int forward = find(p, "forward"), backward = find(p, "backward"), update = find(p, "update");
  if (forward >= 0) {
    std::set<program::BufferId> replaced;
    const auto first = static_cast<int>(p.bodies.size());
    p.bodies.push_back(first_of(p, p.bodies[static_cast<size_t>(forward)], replaced));
    p.bodies.push_back(first_of(p, p.bodies[static_cast<size_t>(backward)], replaced));
    program::CallList train = {.name = "train", .calls = {}};
    for (int64_t m = 0; m < micro_batches; ++m) {
      train.calls.push_back({m == 0 ? first : forward, m});
      train.calls.push_back({m == 0 ? first + 1 : backward, m});
    }
    train.calls.push_back({update, -1});
    p.lists.push_back(std::move(train));
  }
  for (std::string_view name : {"evaluate", "prefill", "decode"})
    if (const int body = find(p, name); body >= 0) p.lists.push_back({.name = std::string(name), .calls = {{body, 0}}});
}

}  // namespace kintsugi::lower
