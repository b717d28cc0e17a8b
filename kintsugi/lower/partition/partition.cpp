#include "kintsugi/lower/partition/partition.h"

#include <algorithm>
#include <optional>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/lower/partition/partitioner.h"

namespace kintsugi::lower {

using graph::Graph;

namespace {

std::vector<const Graph*> graphs_of(const Source& source) {
  std::vector<const Graph*> list;
  if (source.micro) list.push_back(source.micro);
  for (const Source::Pass& pass : source.passes)
    if (pass.graph) list.push_back(pass.graph);
  return list;
}

// A trial run determines how gradients arrive, which decides which parameters share a bucket.
Uses uses_of(const Source& source, const plan::Plan& plan, const Stages& stages) {
  Uses uses;
  for (const Graph* g : graphs_of(source))
    for (const graph::Op& op : g->ops())
      if (op.role() == graph::Role::read_state && source.states[op.state].kind == graph::StateKind::weight)
        uses.layers[op.state].insert(op.layer);
  if (!source.micro) return uses;
  if (plan.mesh.factors().size() == plan.mesh.stage_factors().size()) {
    // Ranks differ only by layers: every gradient arrives whole.
    for (const graph::Op& op : source.micro->ops())
      if (op.role() == graph::Role::accumulate && source.states[op.state].weight != graph::kNone)
        uses.arrivals[source.states[op.state].weight] = {};
    return uses;
  }
  program::Program trial;
  trial.mesh = plan.mesh;
  const Buckets buckets = make_buckets(source.states, uses, plan);
  Partitioner p(trial, source.micro->table(), plan, buckets, stages, 1, false);
  p.run(*source.micro);
  uses.arrivals = p.arrivals();
  return uses;
}

// An axis that splits no operation of a step would only replicate work.
void require_use(const Partitioner& p, const plan::Plan& plan) {
  for (const mesh::Axis& axis : plan.mesh.axes()) {
    if (axis.cuts_layers) continue;
    const std::vector<Factor> factors = plan.mesh.expand(std::vector<std::string>{axis.name});
    for (Factor f : factors)
      if (!p.used().contains(f) && !plan.repeat)
        throw base::UserError("partition",
                              "mesh axis \"{}\" of size {}: no operation of the step has a dim that {} could split, so "
                              "that ranks would only repeat work; make the axis smaller, give it a dim by [parallel] "
                              "rules, or ask for it with allow_repeat = true",
                              axis.name, axis.size,
                              factors.size() == 1 ? "it" : "its factor of " + std::to_string(plan.mesh.factor(f).size));
  }
}

}  // namespace

void partition(program::Program& p, const Source& source, const plan::Plan& plan) {
  p.mesh = plan.mesh;
  const Stages stages = cut_layers(plan, graphs_of(source));
  const Buckets buckets = make_buckets(source.states, uses_of(source, plan, stages), plan);
  Partitioner partitioner(p, source.operations(), plan, buckets, stages, source.micro_batches);
  if (source.micro) {
    partitioner.run(*source.micro);
    require_use(partitioner, plan);
  }
  if (source.update) partitioner.run(update_of_buckets(*source.update, buckets), program::Work::update);
  for (const Source::Pass& pass : source.passes)
    if (pass.graph) partitioner.run(*pass.graph, pass.work);
}

}  // namespace kintsugi::lower
