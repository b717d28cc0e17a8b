#include "kintsugi/plan/check_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/graph/op_row.h"

namespace kintsugi::plan {
namespace {

using graph::OpRow;
using Words = std::vector<std::string_view>;

template <typename List>
bool has(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

struct Check {
  const Plan& plan;
  const ModelDims& model;
  const Rule& rule;

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw base::UserError("plan", "rule \"{}\"{}", base::one_line(to_string(rule), 80),
                          fmt::format(format, std::forward<Args>(args)...));
  }

  void axes() const {
    for (const std::string& axis : rule.axes) {
      if (plan.mesh.has(axis)) continue;
      std::vector<std::string> names;
      for (const mesh::Axis& a : plan.mesh.axes()) {
        Words factors;
        for (mesh::Factor f : plan.mesh.expand(std::vector<std::string>{a.name}))
          factors.push_back(plan.mesh.factor(f).name);
        names.push_back(factors.size() > 1 ? fmt::format("{} ({})", a.name, fmt::join(factors, " ")) : a.name);
      }
      fail(": there is no axis \"{}\"; there are {}", base::one_line(axis, 40), fmt::join(names, ", "));
    }
    const std::vector<mesh::Factor> factors = plan.mesh.expand(rule.axes);
    for (mesh::Factor f : factors)
      if (std::count(factors.begin(), factors.end(), f) > 1) fail(" names \"{}\" twice", plan.mesh.factor(f).name);
  }

  bool in_model() const {
    const auto is_it = [&](const tensor::Dim& d) { return d.name == rule.dim; };
    return (rule.family.empty() || has(families(model), rule.family)) &&
           std::any_of(model.dims.begin(), model.dims.end(), is_it);
  }

  void names() const {
    const Words in_model = families(model);
    if (!rule.family.empty() && !has(in_model, rule.family))
      fail(": there is no family \"{}\"; there are {}", base::one_line(rule.family, 40), fmt::join(in_model, ", "));
    Words known;
    for (const tensor::Dim& d : model.dims) known.push_back(d.name);
    if (rule.dim != kFlat && !has(known, rule.dim))
      fail(": there is no dim \"{}\"; there are {}, {}", base::one_line(rule.dim, 40), fmt::join(known, ", "), kFlat);
    if (rule.dim == kFlat && !has_flat(rule.family))
      fail(
          ": flat is all of a bucket of parameters as one dim, which only states have; write \"flat in weight\", "
          "\"flat "
          "in gradient\" or \"flat in optimizer\"");
  }

  // "attention can take "key_seq"" for each operation that can process a dim in steps.
  std::string who_takes_steps() const {
    std::vector<std::string> list;
    for (const OpRow* row : model.operations)
      for (std::string_view dim : row->steps) {
        const std::string text = fmt::format("{} can take \"{}\"", row->rule_family(), dim);
        if (!has(list, text)) list.push_back(text);
      }
    return list.empty() ? "no operation of the model takes a dim so" : fmt::format("{}", fmt::join(list, ", "));
  }

  void splits() const {
    if (is_kind_of_state(rule.family)) {
      if (rule.steps) fail(": a state is not taken in steps; leave \"in steps\" out");
      return;
    }
    Words steps;
    bool whole = true;
    for (const OpRow* row : model.operations) {
      if (!rule.family.empty() && row->rule_family() != rule.family) continue;
      whole = whole && has(row->whole, rule.dim);
      steps.insert(steps.end(), row->steps.begin(), row->steps.end());
    }
    if (rule.steps) {
      if (has(steps, rule.dim)) return;
      fail(": {} take \"{}\" in steps; {}", rule.family.empty() ? "no operation can" : rule.family + " cannot",
           rule.dim, who_takes_steps());
    }
    const std::string who = rule.family.empty() ? "every operation" : rule.family;
    if (whole && has(steps, rule.dim)) fail(": {} takes \"{}\" whole or in steps; add \", in steps\"", who, rule.dim);
    if (whole) fail(": {} needs \"{}\" whole", who, rule.dim);
  }
};

}  // namespace

void check_rules(const Plan& plan, const ModelDims& model) {
  for (const Rule& rule : plan.rules) {
    const Check check{plan, model, rule};
    check.axes();
    if (rule.general && !check.in_model()) continue;
    check.names();
    check.splits();
  }
}

}  // namespace kintsugi::plan
