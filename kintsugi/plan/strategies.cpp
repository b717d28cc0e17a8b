#include "kintsugi/plan/strategies.h"

#include <algorithm>
#include <vector>

#include "kintsugi/config/axes.h"

namespace kintsugi::plan {
namespace {

using config::Parallel;

constexpr Strategy kStrategies[] = {
    {"one rank", [](Parallel&, int64_t) {}},
    {"data", [](Parallel& p, int64_t ranks) { p.data = ranks; }},
    {"zero 1", [](Parallel& p, int64_t ranks) { p.data = ranks, p.zero = 1; }},
    {"zero 2", [](Parallel& p, int64_t ranks) { p.data = ranks, p.zero = 2; }},
    {"zero 3", [](Parallel& p, int64_t ranks) { p.data = ranks, p.zero = 3; }},
    {"tensor", [](Parallel& p, int64_t ranks) { p.tensor = ranks; }},
    {"tensor, sequence", [](Parallel& p, int64_t ranks) { p.tensor = ranks, p.sequence_parallel = true; }},
    {"context, gathered", [](Parallel& p, int64_t ranks) { p.context = ranks, p.context_method = "gathered"; }},
    {"context, ring", [](Parallel& p, int64_t ranks) { p.context = ranks, p.context_method = "ring"; }},
    {"context, ulysses", [](Parallel& p, int64_t ranks) { p.context = ranks, p.context_method = "ulysses"; }},
    {"pipeline", [](Parallel& p, int64_t ranks) { p.pipe = ranks; }},
};

}  // namespace

std::span<const Strategy> strategies() {
  return kStrategies;
}

Parallel parallel_of(const Strategy& strategy, int64_t ranks) {
  Parallel p;
  strategy.apply(p, ranks);
  p.ranks = config::ranks_of(p);
  return p;
}

std::string splits_of(const Plan& plan, const ModelDims* model) {
  const auto lacks = [&](const Rule& r) {
    return model && std::ranges::none_of(model->dims, [&](const tensor::Dim& d) { return d.name == r.dim; });
  };
  std::vector<std::string> known;
  std::string dims = plan.stages() > 1 ? "layer" : "", flat;
  for (const Rule& r : plan.rules) {
    if (plan.mesh.count(plan.mesh.expand(r.axes)) == 1) continue;
    if (r.dim == kFlat && !r.family.empty()) {
      flat += (flat.empty() ? "flat of " : ", ") + r.family;
      continue;
    }
    if (r.general && lacks(r)) continue;
    const std::string text = r.family.empty() ? r.dim : r.dim + " in " + r.family;
    if (std::find(known.begin(), known.end(), text) != known.end()) continue;
    known.push_back(text);
    dims += (dims.empty() ? "" : ", ") + text;
  }
  if (flat.empty()) return dims.empty() ? "nothing" : dims;
  return dims.empty() ? flat : dims + "; " + flat;
}

}  // namespace kintsugi::plan
