#include "kintsugi/plan/by_rules.h"

#include <algorithm>

#include "kintsugi/mesh/layout.h"

namespace kintsugi::plan {

using mesh::Factor;

bool fits(const mesh::Mesh& mesh, const tensor::Dim& d, const std::vector<Factor>& cut, Factor f, bool pad) {
  const int64_t left = mesh::local_length(mesh, d.name, d.size, cut), parts = mesh.factor(f).size;
  const int64_t chunks = mesh.cut(d.name, f).zigzag ? 2 * parts : parts;
  return left % chunks == 0 || (pad && left > parts);
}

Splits by_rules(const Plan& plan, std::string_view family, const std::vector<tensor::Dim>& dims,
                std::vector<Factor>& taken) {
  Splits splits;
  for (const Rule& rule : plan.rules) {
    if (rule.steps || (!rule.family.empty() && rule.family != family)) continue;
    const auto dim = std::find_if(dims.begin(), dims.end(), [&](const tensor::Dim& d) { return d.name == rule.dim; });
    if (dim == dims.end()) continue;
    std::vector<Factor>& cut = splits[rule.dim];
    for (Factor f : plan.mesh.expand(rule.axes)) {
      if (std::count(taken.begin(), taken.end(), f) || !fits(plan.mesh, *dim, cut, f, rule.pad)) continue;
      cut.push_back(f);
      taken.push_back(f);
    }
  }
  std::erase_if(splits, [](const auto& s) { return s.second.empty(); });
  return splits;
}

}  // namespace kintsugi::plan
