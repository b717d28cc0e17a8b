#include "kintsugi/graph/differentiate.h"

#include <algorithm>

#include "kintsugi/base/error.h"

namespace kintsugi::graph {
namespace {

// What a value depends on: no weight, only frozen weights, or a trained weight.
enum class Depends : uint8_t { on_none, on_frozen, on_trained };

// For each value up to operation `last`.
std::vector<Depends> dependences(const Graph& graph, size_t last) {
  std::vector<Depends> of(graph.values().size(), Depends::on_none);
  for (size_t i = 0; i <= last; ++i) {
    const Op& op = graph.op_at(i);
    Depends most = Depends::on_none;
    if (op.state != kNone && graph.states()[op.state].kind == StateKind::weight)
      most = graph.states()[op.state].frozen ? Depends::on_frozen : Depends::on_trained;
    for (const ValueId v : op.ins) most = std::max(most, of[static_cast<size_t>(v)]);
    for (const ValueId v : op.outs) of[static_cast<size_t>(v)] = most;
  }
  return of;
}

}  // namespace

std::vector<StateGradient> differentiate(Graph& graph, ValueId of, ValueId seed, const Found& found) {
  const Root root = {of, seed};
  return differentiate(graph, std::span(&root, 1), found);
}

std::vector<StateGradient> differentiate(Graph& graph, std::span<const Root> roots, const Found& found) {
  std::vector<std::vector<ValueId>> parts(graph.values().size());
  size_t last = 0;
  for (const Root& root : roots) {
    parts[static_cast<size_t>(root.of)].push_back(root.seed);
    last = std::max(last, static_cast<size_t>(graph.value(root.of).op));
  }
  std::vector<StateGradient> all;
  const std::vector<Depends> depends = dependences(graph, last);
  const auto stops_at = [&](ValueId v) { return v != kNone && depends[static_cast<size_t>(v)] == Depends::on_frozen; };
  graph.phase = Phase::backward;
  for (size_t i = last + 1; i-- > 0;) {
    const Op op = graph.op_at(i);  // copied because the list may grow
    graph.layer = op.layer;
    std::vector<ValueId> douts;  // of the outputs present
    for (ValueId o : op.outs) {
      const auto& sum = parts[static_cast<size_t>(o)];
      douts.push_back(sum.empty() ? kNone : graph.add(sum));
    }
    if (std::all_of(douts.begin(), douts.end(), [](ValueId d) { return d == kNone; })) continue;
    if (op.state != kNone) {
      if (graph.states()[op.state].kind != StateKind::weight) continue;
      all.push_back({op.state, douts[0], op.layer});
      if (found) found(all.back());
      continue;
    }
    if (!op.row->grad) continue;
    const std::vector<ValueId> ins = op.by_position(op.ins);
    const size_t first = graph.ops().size();
    std::vector<ValueId> dins =
        op.row->grad(graph, op, tensor::by_position(std::span<const ValueId>(douts), op.absent.outs, kNone));
    base::require(dins.size() == ins.size(), "differentiate", "{} gives {} gradients for {} inputs", op.kind(),
                  dins.size(), ins.size());
    if (std::any_of(ins.begin(), ins.end(), stops_at)) {
      for (size_t j = 0; j < dins.size(); ++j)
        if (stops_at(ins[j])) dins[j] = kNone;
      dins = graph.prune(first, std::move(dins));
    }
    for (size_t j = 0; j < dins.size(); ++j) {
      if (dins[j] == kNone) continue;
      base::require(ins[j] != kNone, "differentiate", "{} gives a gradient of input {}, which is absent", op.kind(), j);
      if (graph.shape(dins[j]) != graph.shape(ins[j]))
        throw base::InternalError("differentiate", "{}: gradient {} of input {} {}", op.kind(),
                                  to_string(graph.shape(dins[j])), j, to_string(graph.shape(ins[j])));
      parts[static_cast<size_t>(ins[j])].push_back(dins[j]);
    }
  }
  return all;
}

}  // namespace kintsugi::graph
