#include "kintsugi/plan/axes.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/config/context.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::plan {
namespace {

using config::ContextBalance;
using config::ContextMethod;
using config::Parallel;
using mesh::Mesh;
using Names = std::vector<std::string>;
using Rules = std::vector<Rule>;

const config::Axis& named(std::string_view name) {
  const auto& all = config::axes();
  const auto at = std::find_if(all.begin(), all.end(), [&](const config::Axis& a) { return a.name == name; });
  base::require(at != all.end(), "plan", "[parallel] has no axis \"{}\"", name);
  return *at;
}

Rules data_rules(const Parallel&) {
  return {{.dim = std::string(kSamples), .axes = {"data"}}};
}

// The innermost factors of an axis whose product is n; the axis itself if n is its size.
Names inner_factors(const Mesh& mesh, const std::string& axis, int64_t n) {
  if (n == mesh.size(axis)) return {axis};
  const std::vector<mesh::Factor> factors = mesh.expand(Names{axis});
  Names names;
  for (auto f = factors.rbegin(); f != factors.rend(); ++f) {
    if (n % mesh.factor(*f).size != 0) continue;
    n /= mesh.factor(*f).size;
    names.insert(names.begin(), mesh.factor(*f).name);
  }
  base::require(n == 1, "plan", "{} is no part of axis {}", n, axis);
  return names;
}

// All data ranks, or groups of them.
Names data_shards(const Parallel& p, const Mesh& mesh) {
  return inner_factors(mesh, "data", p.shard_group ? p.shard_group : p.data);
}

// Acts as a further data axis, except for experts and their weights: tokens travel to the experts and back. Slots are
// computed where the tokens are.
Rules expert_rules(const Parallel&) {
  const Names axes = {"expert"};
  return {{.dim = std::string(kSamples), .axes = axes, .family = "dispatch"},
          {.dim = "expert", .axes = axes},
          {.dim = std::string(kSamples), .axes = axes}};
}

Names expert_shards(const Parallel&, const Mesh&) {
  return {"expert"};
}

Rules tensor_rules(const Parallel&) {
  Rules rules = {{.dim = "kv_heads", .axes = {"tensor"}}, {.dim = "group", .axes = {"tensor"}}};
  for (const char* dim : {"kv_heads", "ffn", "vocab", "filter"})
    rules.push_back({.dim = dim, .axes = {"tensor"}, .pad = true});
  return rules;
}

// Innermost first: if key-value heads use the first factors, the tokens of keys stay split by the others.
Rules sequence_parallel_rules(const Parallel& p, const Mesh& mesh) {
  if (!p.sequence_parallel) return {};
  return {{.dim = "seq", .axes = innermost_first(mesh, {"tensor"}), .pad = true}};
}

Rules context_rules(const Parallel& p) {
  const Names axes = {"context"};
  Rules rules;
  switch (config::context_method(p)) {
    case ContextMethod::gathered:
      break;
    case ContextMethod::ring:
      rules.push_back({.dim = "key_seq", .axes = axes, .family = "attention", .pad = true, .steps = true});
      break;
    case ContextMethod::ulysses:
      for (const char* dim : {"kv_heads", "group"}) rules.push_back({.dim = dim, .axes = axes, .family = "attention"});
      break;
  }
  rules.push_back({.dim = "seq", .axes = axes, .pad = true});
  // Tokens of experts are no longer in sequence order. If experts have their own axis, they are split by it instead.
  if (p.expert == 1) rules.push_back({.dim = "expert", .axes = axes});
  rules.push_back({.dim = "slot", .axes = axes, .pad = true});
  return rules;
}

Rules space_rules(const Parallel& p) {
  Rules rules;
  for (const std::string& dim : tensor::words(p.space_dims))
    rules.push_back({.dim = dim, .axes = {"space"}, .pad = true});
  rules.push_back({.dim = "seq", .axes = {"space"}, .pad = true});  // the tokens of patches
  return rules;
}

Names context_shards(const Parallel& p, const Mesh&) {
  return p.shard_context ? Names{"context"} : Names{};
}

Names context_zigzag(const Parallel& p) {
  return config::context_balance(p) == ContextBalance::zigzag ? Names{"seq", "key_seq"} : Names{};
}

}  // namespace

const std::vector<AxisRow>& axis_rows() {
  static const std::vector<AxisRow> kRows = {
      {.axis = named("data"), .rules = data_rules, .shards = data_shards},
      {.axis = named("tensor"), .rules = tensor_rules, .further = sequence_parallel_rules},
      {.axis = named("context"), .rules = context_rules, .shards = context_shards, .zigzag = context_zigzag},
      {.axis = named("space"), .rules = space_rules},
      {.axis = named("expert"), .rules = expert_rules, .shards = expert_shards},
      {.axis = named("pipe")},  // layers are split by Plan::layers, not by rules
  };
  return kRows;
}

std::vector<std::string> innermost_first(const Mesh& mesh, const Names& axes) {
  Names names;
  for (mesh::Factor f : mesh.expand(axes)) names.insert(names.begin(), mesh.factor(f).name);
  return names;
}

}  // namespace kintsugi::plan
