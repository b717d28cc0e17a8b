#include "kintsugi/program/order.h"

#include <algorithm>

namespace kintsugi::program {

std::vector<BufferId> roots_of(const Program& p, const Instruction& i) {
  std::vector<BufferId> roots;
  roots.reserve(i.ins.size() + i.outs.size() + 1);
  for (const std::vector<BufferId>* operands : {&i.ins, &i.outs})
    for (BufferId b : *operands) roots.push_back(p.root(b));
  std::sort(roots.begin(), roots.end());
  roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
  return roots;
}

bool touches(const Program& p, const std::vector<BufferId>& a, const std::vector<BufferId>& b) {
  return std::any_of(a.begin(), a.end(), [&](BufferId x) {
    return std::any_of(b.begin(), b.end(), [&](BufferId y) { return p.overlap(x, y); });
  });
}

bool in_order(const Program& p, const Instruction& a, const Instruction& b) {
  return touches(p, a.outs, b.ins) || touches(p, a.outs, b.outs) || touches(p, a.ins, b.outs);
}

}  // namespace kintsugi::program
