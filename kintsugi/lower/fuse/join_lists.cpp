#include "kintsugi/lower/fuse/join_lists.h"

#include <vector>

#include "kintsugi/lower/fuse/patterns.h"
#include "kintsugi/program/order.h"

namespace kintsugi::lower {

using program::Instruction;
using program::Kind;
using program::Program;

namespace {

bool is_listed(const graph::OpTable& operations, const Instruction& i) {
  return i.kind == Kind::compute && i.accumulate == 0 && find_pattern(Rewrite::list, i.kernel) != nullptr &&
         operations.find(i.kernel).listed;
}

constexpr size_t kMost = 32;  // outputs: Instruction::accumulate has one bit for each

// Whether `next` can be joined with `first`, which precedes it.
bool goes_with(const Program& p, const Instruction& first, const Instruction& next) {
  return first.kernel == next.kernel && first.outs.size() + next.outs.size() <= kMost &&
         first.attributes == next.attributes && first.phase == next.phase && !program::in_order(p, first, next);
}

void add(Instruction& to, const Instruction& next) {
  to.ins.insert(to.ins.end(), next.ins.begin(), next.ins.end());
  to.outs.insert(to.outs.end(), next.outs.begin(), next.outs.end());
  to.cost.flops += next.cost.flops;
  to.cost.memory_bytes += next.cost.memory_bytes;
  if (to.layer != next.layer) to.layer = -1;
}

}  // namespace

void join_lists(Program& p, const graph::OpTable& operations) {
  if (!p.on_device) return;
  for (program::Body& body : p.bodies) {
    std::vector<Instruction> joined;
    for (Instruction& i : body.instructions) {
      if (!joined.empty() && is_listed(operations, joined.back()) && is_listed(operations, i) &&
          goes_with(p, joined.back(), i))
        add(joined.back(), i);
      else
        joined.push_back(std::move(i));
    }
    body.instructions = std::move(joined);
  }
}

}  // namespace kintsugi::lower
