#include "kintsugi/plan/check_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/graph/op_row.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::plan {
namespace {

using graph::OpRow;
using Names = std::vector<std::string_view>;

constexpr std::string_view kFlat = "flat";
constexpr std::string_view kFlatFamilies[] = {"weight", "gradient", "optimizer"};
constexpr std::string_view kStates[] = {"weight", "gradient", "optimizer", "cache", "statistic"};

template <typename List>
bool has(const List& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

// Rows that a rule can speak of: not those that read and write states, whose family is the state's kind, nor those that
// are made however they are asked for.
bool named_by_rules(const OpRow& row) {
  return !row.effect && !row.free && row.kind != "state";
}

struct Check {
  const Plan& plan;
  std::span<const tensor::Dim> dims;
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
        Names factors;
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

  void names() const {
    if (!rule.family.empty() && !has(families(), rule.family))
      fail(": there is no family \"{}\"; there are {}", base::one_line(rule.family, 40), fmt::join(families(), ", "));
    Names known;
    for (const tensor::Dim& d : dims) known.push_back(d.name);
    if (rule.dim != kFlat && !has(known, rule.dim))
      fail(": there is no dim \"{}\"; there are {}, {}", base::one_line(rule.dim, 40), fmt::join(known, ", "), kFlat);
    if (rule.dim == kFlat && !has(kFlatFamilies, rule.family))
      fail(
          ": flat is all of a bucket of parameters as one dim, which only states have; write \"flat in weight\", "
          "\"flat "
          "in gradient\" or \"flat in optimizer\"");
  }

  void splits() const {
    if (has(kStates, rule.family)) {
      if (rule.steps) fail(": a state is not taken in steps; leave \"in steps\" out");
      return;
    }
    Names steps;
    bool speaks = false, whole = true;
    for (const OpRow& row : ops::operations().rows()) {
      if (!named_by_rules(row) || !(rule.family.empty() || row.rule_family() == rule.family)) continue;
      speaks = true;
      whole = whole && has(row.whole, rule.dim);
      steps.insert(steps.end(), row.steps.begin(), row.steps.end());
    }
    base::require(speaks, "plan", "no operation is of family {}", rule.family);
    if (rule.steps) {
      if (has(steps, rule.dim)) return;
      fail(": {} take \"{}\" in steps; attention can take \"key_seq\"",
           rule.family.empty() ? "no operation can" : rule.family + " cannot", rule.dim);
    }
    const std::string who = rule.family.empty() ? "every operation" : rule.family;
    if (whole && has(steps, rule.dim)) fail(": {} takes \"{}\" whole or in steps; add \", in steps\"", who, rule.dim);
    if (whole) fail(": {} needs \"{}\" whole", who, rule.dim);
  }
};

}  // namespace

std::vector<std::string_view> families() {
  Names list;
  for (const OpRow& row : ops::operations().rows())
    if (named_by_rules(row) && !has(list, row.rule_family()) && !has(kStates, row.rule_family()))
      list.push_back(row.rule_family());
  list.insert(list.end(), std::begin(kStates), std::end(kStates));
  return list;
}

void check_rules(const Plan& plan, std::span<const tensor::Dim> dims) {
  for (const Rule& rule : plan.rules) {
    const Check check{plan, dims, rule};
    check.axes();
    check.names();
    check.splits();
  }
}

}  // namespace kintsugi::plan
