#include "kintsugi/lower/order/split_backward.h"

#include <algorithm>
#include <vector>

namespace kintsugi::lower {

using graph::Op;
using graph::Phase;

graph::Graph split_backward(const graph::Graph& micro) {
  graph::Graph g = micro;
  std::vector<std::vector<size_t>> readers(g.values().size());
  for (size_t i = 0; i < g.ops().size(); ++i)
    for (graph::ValueId v : g.op_at(i).ins) readers[static_cast<size_t>(v)].push_back(i);
  for (size_t i = g.ops().size(); i-- > 0;) {
    const Op& op = g.op_at(i);
    if (op.phase != Phase::backward) continue;
    const auto only_adds = [&](graph::ValueId v) {
      const std::vector<size_t>& all = readers[static_cast<size_t>(v)];
      return !all.empty() && std::all_of(all.begin(), all.end(), [&](size_t r) {
        const Op& reader = g.op_at(r);
        if (reader.role() == graph::Role::accumulate)
          return g.states()[reader.state].kind == graph::StateKind::gradient;
        return reader.phase == Phase::weight && reader.ins.size() == 1;
      });
    };
    if (!op.outs.empty() && !op.row->free && std::all_of(op.outs.begin(), op.outs.end(), only_adds))
      g.set_phase(i, Phase::weight);
  }
  for (size_t i = 0; i < g.ops().size(); ++i) {
    const Op& op = g.op_at(i);
    if (op.role() != graph::Role::accumulate || op.phase != Phase::backward) continue;
    const int maker = g.value(op.ins[0]).op;
    if (maker >= 0 && g.op_at(static_cast<size_t>(maker)).phase == Phase::weight) g.set_phase(i, Phase::weight);
  }
  return g;
}

}  // namespace kintsugi::lower
