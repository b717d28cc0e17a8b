#include "kintsugi/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kintsugi/graph/graph.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::plan {
namespace {

using config::Parallel;
using graph::StateKind;
using mesh::Mesh;
using Rows = std::span<const AxisRow>;

// Outermost first, as in mesh_order. Axes it omits are placed just outside the first axis that is nearer.
std::vector<const AxisRow*> in_order(const Parallel& p, Rows rows) {
  std::vector<const AxisRow*> order;
  for (const std::string& name : tensor::words(p.mesh_order))
    for (const AxisRow& row : rows)
      if (row.axis.name == name) order.push_back(&row);
  for (const AxisRow& row : rows) {
    if (std::find(order.begin(), order.end(), &row) != order.end()) continue;
    const auto nearer = [&](const AxisRow* other) { return other->axis.nearness > row.axis.nearness; };
    order.insert(std::find_if(order.begin(), order.end(), nearer), &row);
  }
  return order;
}

Mesh mesh_of(const Parallel& p, Rows rows) {
  std::vector<mesh::Axis> axes;
  for (const AxisRow* row : in_order(p, rows)) {
    const int64_t size = row->axis.size(p);
    if (size == 1 && row->axis.optional) continue;
    axes.push_back({.name = std::string(row->axis.name), .size = size, .cuts_layers = row->axis.cuts_layers});
    if (size > 1 && row->zigzag) axes.back().zigzag = row->zigzag(p);
  }
  return Mesh(std::move(axes));
}

void add_general(std::vector<Rule>& rules, std::vector<Rule> of_axis) {
  for (Rule& rule : of_axis) {
    rule.general = true;
    rules.push_back(std::move(rule));
  }
}

}  // namespace

Plan plan_from(const Parallel& p, Rows axes) {
  Plan plan = {.mesh = mesh_of(p, axes),
               .keep = p.keep_gathered,
               .keep_logits = p.keep_logits,
               .repeat = p.allow_repeat,
               .wire = tensor::dtype_from(p.wire)};
  if (plan.stages() > 1) {
    plan.chunks = static_cast<int>(p.chunks);
    plan.schedule = p.schedule;
    for (const std::string& word : tensor::words(p.stages)) plan.layers.push_back(std::stoll(word));
  }
  for (const std::string& text : p.rules) plan.rules.push_back(parse_rule(text));
  std::vector<const AxisRow*> used;
  for (const AxisRow& row : axes)
    if (row.axis.size(p) > 1) used.push_back(&row);
  std::vector<std::string> shards;
  for (const AxisRow* row : used) {
    if (row->rules) add_general(plan.rules, row->rules(p));
    if (!row->shards) continue;
    for (const std::string& name : row->shards(p, plan.mesh)) shards.push_back(name);
  }
  for (const AxisRow* row : used)
    if (row->further) add_general(plan.rules, row->further(p, plan.mesh));

  int64_t stage = 0;
  for (StateKind kind : {StateKind::optimizer, StateKind::gradient, StateKind::weight})
    if (p.zero >= ++stage && !shards.empty())
      plan.rules.push_back({.dim = std::string(kFlat), .axes = shards, .family = std::string(name_of(kind))});
  return plan;
}

Plan in_units(Plan plan) {
  plan.units = true;
  for (Rule& rule : plan.rules)
    if (rule.dim == kSamples) rule.axes = innermost_first(plan.mesh, rule.axes);
  return plan;
}

std::string print(const Plan& plan) {
  const int64_t ranks = plan.mesh.ranks();
  std::string text = fmt::format("plan: {} rank{}", ranks, ranks == 1 ? "" : "s");
  if (ranks > 1) text += ", mesh " + to_string(plan.mesh);
  for (const mesh::Axis& a : plan.mesh.axes())
    if (a.size > 1 && !a.zigzag.empty())
      text += fmt::format(", {} zigzag over {}", fmt::join(a.zigzag, " and "), a.name);
  if (plan.keep) text += ", gathered activations kept";
  if (!plan.keep_logits) text += ", logits not kept";
  if (plan.repeat) text += ", repeated work allowed";
  if (plan.units) text += ", added in one tree";
  if (plan.wire != tensor::DType::f32) text += fmt::format(", gradients travel in {}", tensor::name_of(plan.wire));
  if (plan.stages() > 1) {
    text += fmt::format("\n  layer -> {}, {}", plan.mesh.name_of(plan.mesh.stage_factors()), plan.schedule);
    if (plan.chunks > 1) text += fmt::format(" with {} chunks", plan.chunks);
    if (!plan.layers.empty()) text += fmt::format(", of {} layers", fmt::join(plan.layers, " "));
  }
  for (const Rule& r : plan.rules) text += "\n  " + to_string(r);
  return text + "\n";
}

}  // namespace kintsugi::plan
