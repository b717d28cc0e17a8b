#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "app/program_of.h"
#include "app/program_schedule.h"
#include "app/ranks.h"
#include "app/run_options.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/build/programs.h"
#include "kintsugi/build/strategy_costs.h"
#include "kintsugi/graph/print.h"
#include "kintsugi/models/step.h"
#include "kintsugi/plan/plan.h"
#include "kintsugi/plan/schedule_picture.h"
#include "kintsugi/program/communication.h"
#include "kintsugi/program/print.h"

namespace kintsugi::app {
namespace {

// In the order in which data flows.
constexpr std::string_view kProgram = "memory";  // the last pass of lowering
constexpr std::string_view kTasks = "tasks", kSent = "communication";
constexpr std::array<std::string_view, 16> kPasses = {
    "graph", "differentiate", "update",   "evaluate", "states",  "plan",   "partition", "prefetch",
    "fuse",  "workspace",     "schedule", "overlap",  "offload", kProgram, kTasks,      kSent};

// For as many ranks as the plan has; where it has one, for 2, 4 and 8.
std::string print_strategies(const config::Settings& s) {
  std::string text;
  const int64_t ranks = s.parallel.ranks;
  for (int64_t n : ranks > 1 ? std::vector<int64_t>{ranks} : std::vector<int64_t>{2, 4, 8})
    text += "\n" + build::print(build::strategy_costs(s, n), n);
  return text;
}

std::string print_tasks(const std::vector<program::Program>& stages, const config::Settings& s,
                        const std::string& svg) {
  const plan::Schedule schedule = schedule_of(stages, s);
  const plan::Timeline equal = plan::timeline(schedule),
                       real = plan::timeline(schedule, costs_of(schedule, stages, 1e9));
  if (!svg.empty()) base::write_output(svg, plan::svg_picture(schedule, real, "Gflop"));
  return fmt::format("chunks alike    {}\nby their flops  {}\n\n{}", plan::headline(schedule, equal),
                     plan::headline(schedule, real, "Gflop"), plan::text_picture(schedule));
}

void run(const RunOptions& options, const std::string& pass, const std::string& svg) {
  if (!pass.empty() && std::find(kPasses.begin(), kPasses.end(), pass) == kPasses.end())
    throw base::UserError("explain", "there is no pass \"{}\"; there are {}", pass, fmt::join(kPasses, ", "));
  config::Resolved resolved = read_run(options);
  const std::array<base::Output, 1> outputs = {{{"--svg", svg}}};
  refuse_run_files("explain", options, resolved.settings, outputs);
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
  show("plan", [&] { return plan::print(build::plan_of(s)); });
  const bool staged = s.parallel.pipe > 1;
  const std::vector<program::Program> made = programs_of(s, [&](std::string_view name, const program::Program& p) {
    // Without --pass the program is shown once, at the end, with the offsets of its buffers.
    const bool all = name == "partition" || !staged;
    if (pass == name || (pass.empty() && name == kProgram))
      show(name, [&] { return (all ? "" : fmt::format("stage {}\n", p.stage)) + program::print(p); });
  });
  show(kTasks, [&] { return print_tasks(made, s, svg); });
  if (!svg.empty() && !pass.empty() && pass != kTasks) print_tasks(made, s, svg);
  show(kSent, [&] {
    std::string text;
    for (const program::Program& p : made)
      text += (staged ? fmt::format("stage {}\n", p.stage) : "") + program::print_communication(p);
    return text + print_strategies(s);
  });
}

}  // namespace

void add_explain(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("explain", "Prints the result of each pass of the compiler for a run.toml");
  const auto options = add_run_options(verb);
  const auto pass = std::make_shared<std::string>();
  verb.text("--pass", *pass, fmt::format("Only this one: {}", fmt::join(kPasses, ", ")));
  const auto svg = std::make_shared<std::string>();
  verb.text("--svg", *svg, "Draws what the stages do and when, each task as long as its flops, into this file");
  verb.run([options, pass, svg] {
    require_one_process("explain");
    run(*options, *pass, *svg);
  });
}

}  // namespace kintsugi::app
