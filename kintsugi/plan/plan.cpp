#include "kintsugi/plan/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::plan {
namespace {

using config::Parallel;
using mesh::Mesh;

bool zigzag(const Parallel& p) {
  return p.context > 1 && (p.context_balance.empty() ? p.context_method != "ulysses" : p.context_balance == "zigzag");
}

Mesh mesh_of(const Parallel& p) {
  std::vector<mesh::Axis> axes;
  if (p.pipe > 1 && p.mesh_order.find("pipe") == std::string::npos) axes.push_back({"pipe", p.pipe});
  for (const std::string& name : tensor::words(p.mesh_order)) {
    if (name == "pipe" && p.pipe > 1) axes.push_back({name, p.pipe});
    if (name == "data") axes.push_back({name, p.data});
    if (name == "tensor") axes.push_back({name, p.tensor});
    if (name == "context")
      axes.push_back(
          {name, p.context, zigzag(p) ? std::vector<std::string>{"seq", "key_seq"} : std::vector<std::string>{}});
  }
  return Mesh(std::move(axes));
}

// The factors of an axis whose product is n, as far inside as they can be; the axis itself where that is all of it.
std::vector<std::string> inner_factors(const Mesh& mesh, const std::string& axis, int64_t n) {
  if (n == mesh.size(axis)) return {axis};
  const std::vector<mesh::Factor> factors = mesh.expand(std::vector<std::string>{axis});
  std::vector<std::string> names;
  for (auto f = factors.rbegin(); f != factors.rend(); ++f) {
    if (n % mesh.factor(*f).size != 0) continue;
    n /= mesh.factor(*f).size;
    names.insert(names.begin(), mesh.factor(*f).name);
  }
  base::require(n == 1, "plan", "{} is no part of axis {}", n, axis);
  return names;
}

// Over which states are split: all data ranks or a group of them, and those of context where asked for.
std::vector<std::string> shard_axes(const Parallel& p, const Mesh& mesh) {
  std::vector<std::string> axes;
  if (p.data > 1) axes = inner_factors(mesh, "data", p.shard_group ? p.shard_group : p.data);
  if (p.context > 1 && p.shard_context) axes.push_back("context");
  return axes;
}

std::vector<std::string> innermost_first(const mesh::Mesh& mesh, const std::vector<std::string>& axes) {
  std::vector<std::string> names;
  for (mesh::Factor f : mesh.expand(axes)) names.insert(names.begin(), mesh.factor(f).name);
  return names;
}

}  // namespace

Plan plan_from(const Parallel& p) {
  Plan plan = {.mesh = mesh_of(p),
               .keep = p.keep_gathered,
               .keep_logits = p.keep_logits,
               .repeat = p.allow_repeat,
               .wire = tensor::dtype_from(p.wire)};
  if (p.pipe > 1) {
    plan.chunks = static_cast<int>(p.chunks);
    plan.schedule = p.schedule;
    for (const std::string& word : tensor::words(p.stages)) plan.layers.push_back(std::stoll(word));
  }
  std::vector<Rule>& rules = plan.rules;
  for (const std::string& text : p.rules) rules.push_back(parse_rule(text));

  if (p.data > 1) rules.push_back({.dim = "batch", .axes = {"data"}});
  if (p.tensor > 1) {
    rules.push_back({.dim = "kv_heads", .axes = {"tensor"}});
    rules.push_back({.dim = "group", .axes = {"tensor"}});
    for (const char* dim : {"kv_heads", "ffn", "vocab"}) rules.push_back({.dim = dim, .axes = {"tensor"}, .pad = true});
  }
  if (p.context > 1) {
    if (p.context_method == "ulysses")
      for (const char* dim : {"kv_heads", "group"})
        rules.push_back({.dim = dim, .axes = {"context"}, .family = "attention"});
    if (p.context_method == "ring")
      rules.push_back({.dim = "key_seq", .axes = {"context"}, .family = "attention", .pad = true, .steps = true});
    rules.push_back({.dim = "seq", .axes = {"context"}, .pad = true});
  }
  // Innermost first: where key-value heads take the first factors alone, the tokens of keys stay cut by the others.
  if (p.tensor > 1 && p.sequence_parallel)
    rules.push_back({.dim = "seq", .axes = innermost_first(plan.mesh, {"tensor"}), .pad = true});

  const std::vector<std::string> shards = shard_axes(p, plan.mesh);
  int64_t stage = 0;
  for (const char* family : {"optimizer", "gradient", "weight"})
    if (p.zero >= ++stage && !shards.empty()) rules.push_back({.dim = "flat", .axes = shards, .family = family});
  return plan;
}

Plan in_units(Plan plan) {
  plan.units = true;
  for (Rule& rule : plan.rules) {
    if (rule.dim != "batch") continue;
    rule.axes = innermost_first(plan.mesh, rule.axes);
  }
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
    text += fmt::format("\n  layer -> pipe, {}", plan.schedule);
    if (plan.chunks > 1) text += fmt::format(" with {} chunks", plan.chunks);
    if (!plan.layers.empty()) text += fmt::format(", of {} layers", fmt::join(plan.layers, " "));
  }
  for (const Rule& r : plan.rules) text += "\n  " + to_string(r);
  return text + "\n";
}

}  // namespace kintsugi::plan
