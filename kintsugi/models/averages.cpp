#include "kintsugi/models/averages.h"

#include <vector>

#include "kintsugi/graph/copy.h"

namespace kintsugi::models {

using graph::Graph;
using graph::Op;
using graph::Role;
using graph::State;
using graph::StateId;
using graph::ValueId;

Graph with_averages(const Graph& from) {
  Graph g(from.name(), from.table(), from.states());
  std::vector<ValueId> now(from.values().size(), graph::kNone);
  for (const Op& op : from.ops()) {
    g.phase = op.phase;
    g.layer = op.layer;
    std::vector<ValueId> ins, outs;
    for (const ValueId v : op.ins) ins.push_back(now[static_cast<size_t>(v)]);
    const bool reads = op.role() == Role::read_state && from.states()[op.state].kind == graph::StateKind::weight;
    const StateId average =
        reads ? from.states().find(from.states()[op.state].name + std::string(kAverageSuffix)) : graph::kNone;
    if (average == graph::kNone) {
      outs = append_copy(g, from, op, std::move(ins), "");
    } else {
      // The average is only on the stage of its own layer, from which others receive a value, not a state.
      const State weight = from.states()[op.state];
      g.layer = weight.layer;
      ValueId x = g.read(average);
      if (weight.layer != op.layer || g.type(x).dtype != weight.type.dtype)
        x = g.op("cast", {x}, {{"dtype", std::string(name_of(weight.type.dtype))}});
      outs = {x};
    }
    for (size_t i = 0; i < op.outs.size(); ++i) now[static_cast<size_t>(op.outs[i])] = outs[i];
  }
  return g;
}

}  // namespace kintsugi::models
