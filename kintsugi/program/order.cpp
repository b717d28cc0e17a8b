#include "kintsugi/program/order.h"

#include <algorithm>

namespace kintsugi::program {

bool touches(const Program& p, const std::vector<BufferId>& a, const std::vector<BufferId>& b) {
  return std::any_of(a.begin(), a.end(), [&](BufferId x) {
    return std::any_of(b.begin(), b.end(), [&](BufferId y) { return p.overlap(x, y); });
  });
}

bool in_order(const Program& p, const Instruction& a, const Instruction& b) {
  return touches(p, a.outs, b.ins) || touches(p, a.outs, b.outs) || touches(p, a.ins, b.outs);
}

}  // namespace kintsugi::program
