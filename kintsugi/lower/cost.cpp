#include "kintsugi/lower/cost.h"

#include <vector>

namespace kintsugi::lower {

program::Cost cost_of(const program::Program& p, const graph::OpTable& operations, const program::Instruction& i) {
  std::vector<tensor::Type> ins, outs;
  for (const program::BufferId b : i.ins) ins.push_back(p.buffer(b).type);
  for (const program::BufferId b : i.outs) outs.push_back(p.buffer(b).type);
  const graph::Cost cost = graph::cost(operations.find(i.kernel), ins, outs, i.attributes, i.absent);
  return {.flops = cost.flops, .memory_bytes = cost.memory_bytes, .cost_class = cost.cost_class};
}

}  // namespace kintsugi::lower
