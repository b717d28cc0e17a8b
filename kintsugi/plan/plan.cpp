#include "kintsugi/plan/plan.h"

#include <fmt/format.h>

namespace kintsugi::plan {

int64_t Mesh::ranks() const {
  int64_t n = 1;
  for (const Axis& a : axes) n *= a.size;
  return n;
}

Plan plan_from(const config::Parallel& parallel) {
  return {.mesh = {{{"data", parallel.ranks}}}, .rules = {{.dim = "batch", .axes = {"data"}, .family = {}}}};
}

std::string print(const Plan& plan) {
  std::string text = fmt::format("plan: {} rank{}, mesh", plan.mesh.ranks(), plan.mesh.ranks() == 1 ? "" : "s");
  for (const Axis& a : plan.mesh.axes) text += fmt::format(" {}={}", a.name, a.size);
  for (const Rule& r : plan.rules) {
    text += fmt::format("\n  {}{}{} ->", r.dim, r.family.empty() ? "" : " in ", r.family);
    for (const std::string& a : r.axes) text += " " + a;
    text += fmt::format("{}{}", r.pad ? ", padded" : "", r.steps ? ", in steps" : "");
  }
  return text + "\n";
}

}  // namespace kintsugi::plan
