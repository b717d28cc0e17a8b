#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "app/program_of.h"
#include "app/run_options.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/graph/print.h"
#include "kintsugi/models/step.h"
#include "kintsugi/plan/plan.h"
#include "kintsugi/program/print.h"

namespace kintsugi::app {
namespace {

// In the order of the way that data flows.
constexpr std::array<std::string_view, 10> kPasses = {"graph", "differentiate", "update", "evaluate",  "states",
                                                      "plan",  "partition",     "fuse",   "workspace", "schedule"};
constexpr std::string_view kLast = "memory";

void run(const RunOptions& options, const std::string& pass) {
  if (!pass.empty() && pass != kLast && std::find(kPasses.begin(), kPasses.end(), pass) == kPasses.end())
    throw base::UserError("explain", "there is no pass \"{}\"; there are {}, {}", pass, fmt::join(kPasses, ", "),
                          kLast);
  config::Resolved resolved = read_run(options);
  fill_vocab(resolved);
  const config::Settings& s = resolved.settings;
  const auto show = [&](std::string_view name, const auto& text) {
    if (pass.empty()) fmt::print("==== {}\n{}\n", name, text());
    if (pass == name) fmt::print("{}", text());
  };
  {
    graph::StateTable states;
    const graph::Graph forward = models::build_forward(s, states);
    show("graph", [&] { return graph::print(forward); });
  }
  {
    const models::Graphs graphs = models::build_training(s);
    show("differentiate", [&] { return graph::print(*graphs.micro); });
    show("update", [&] { return graph::print(*graphs.update); });
    show("evaluate", [&] { return graph::print(*graphs.evaluate); });
    show("states", [&] { return graph::print(*graphs.states); });
  }
  show("plan", [&] { return plan::print(plan::plan_from(s.parallel)); });
  program_of(s, [&](std::string_view name, const program::Program& p) {
    // Without --pass the program is shown once, at the end, with its buffers in place.
    if (pass == name || (pass.empty() && name == kLast)) show(name, [&] { return program::print(p); });
  });
}

}  // namespace

void add_explain(CLI::App& kintsugi) {
  CLI::App* verb = kintsugi.add_subcommand("explain", "Prints what each stage of the compilation makes of a run.toml");
  const auto options = add_run_options(*verb);
  const auto pass = std::make_shared<std::string>();
  verb->add_option("--pass", *pass, fmt::format("One alone: {}, {}", fmt::join(kPasses, ", "), kLast));
  verb->callback([options, pass] { run(*options, *pass); });
}

}  // namespace kintsugi::app
