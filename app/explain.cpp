#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "app/explain_bytes.h"
#include "app/fold.h"
#include "app/model_in_words.h"
#include "app/program_of.h"
#include "app/program_schedule.h"
#include "app/progress.h"
#include "app/ranks.h"
#include "app/run_options.h"
#include "app/standard_streams.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/compile/strategy_costs.h"
#include "kintsugi/graph/print.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/step.h"
#include "kintsugi/plan/plan.h"
#include "kintsugi/plan/schedule_picture.h"
#include "kintsugi/program/communication.h"
#include "kintsugi/program/memory_table.h"
#include "kintsugi/program/print.h"
#include "kintsugi/train/corpus.h"

namespace kintsugi::app {
namespace {

// A part of the compiler's output, and its description.
struct Pass {
  std::string_view name, about;
};
constexpr std::string_view kProgram = "memory";  // the last pass of lowering
constexpr std::string_view kTasks = "tasks", kSent = "communication";
// In the order of data flow.
constexpr Pass kPasses[] = {{"graph", "the model's forward pass: operations over values with named dims"},
                            {"differentiate", "the micro-batch: forward, backward, gradient accumulation"},
                            {"update", "the update: gradient norm, clipping, optimizer"},
                            {"evaluate", "the loss alone"},
                            {"states", "states: weights, gradient accumulators, optimizer moments"},
                            {"plan", "the mesh of ranks, and which dim is split over which axis"},
                            {"partition", "the graphs as instructions of a rank, with communication"},
                            {"prefetch", "weight gathers, prefetched one layer ahead"},
                            {"fuse", "fused instructions"},
                            {"join_columns", "on a device, matmuls that share an input, as one over adjacent operands"},
                            {"split_interior", "convolutions whose interior is computed while their halo travels"},
                            {"workspace", "scratch memory for kernels"},
                            {"schedule", "the order of forward and backward passes of micro-batches"},
                            {"overlap", "communication started as early and awaited as late as possible"},
                            {"offload", "offloaded buffers, and when each is stored and fetched"},
                            {"move_gradients", "with one micro-batch, gradient accumulators moved to the arena"},
                            {"join_lists", "on a device, adjacent sums of squares as one instruction"},
                            {kProgram, "the final program: the offset of each buffer, total bytes and FLOPs"},
                            {"shorten", "training steps with fewer micro-batches, for the warm-up of the batch"},
                            {"group_launches", "on a device, instructions grouped into kernel launches"},
                            {"route", "on a device, routes of messages, staging of inputs, and captured graphs"},
                            {"place_waits", "on a device, synchronization between the compute stream and transfers"},
                            {kTasks, "the pipeline schedule as a diagram"},
                            {kSent, "the collectives of a step, and the traffic and memory of other strategies"}};

std::string pass_names() {
  std::string names;
  for (const Pass& pass : kPasses) names += (names.empty() ? "" : ", ") + std::string(pass.name);
  return names;
}

std::string how_many(size_t n, std::string_view what) {
  return fmt::format("{} {}{}", base::group_digits(static_cast<int64_t>(n)), what, n == 1 ? "" : "s");
}

// A summary of a stage's program in one line.
std::string stage_in_words(const program::Program& p) {
  size_t instructions = 0;
  for (const program::Body& body : p.bodies) instructions += body.instructions.size();
  double sent = 0;
  for (const program::Traffic& t : program::traffic(p, program::Step::train)) sent += t.total();
  std::string text = fmt::format("{} in {}, {} a step, {} of memory", how_many(instructions, "instruction"),
                                 p.bodies.size() == 1 ? "one body" : fmt::format("{} bodies", p.bodies.size()),
                                 base::format_rate(p.flops(program::Step::train), "FLOP"),
                                 base::format_bytes(static_cast<uint64_t>(p.bytes())));
  if (p.mesh.ranks() > 1)
    text += fmt::format(", {} sent by each rank", base::format_bytes(static_cast<uint64_t>(sent)));
  return text;
}

// A summary of the compiled run, with pointers to details.
std::string overview(const config::Settings& s, const models::Graphs& graphs, const graph::Graph& forward,
                     const std::vector<program::Program>& stages) {
  const auto line = [](std::string_view name, const std::string& text) {
    return fmt::format("{:<12} {}\n", name, fold(text, kColumns, 13));
  };
  int64_t parameters = 0;
  for (const program::Program& p : stages) parameters += program::model_share(p).parameters;
  const mesh::Mesh& mesh = stages[0].mesh;
  std::string text =
      line("model", fmt::format("{}, {} parameters", model_in_words(s.model), base::group_digits(parameters)));
  const std::string samples = how_many(static_cast<size_t>(s.train.global_batch), "sample");
  text += line(
      "step",
      fmt::format("{}, in {} of {}",
                  models::reads_tokens(s.model) ? fmt::format("{} of {} tokens", samples, s.train.sequence) : samples,
                  compile::micro_batches(s) == 1 ? "one pass" : fmt::format("{} passes", compile::micro_batches(s)),
                  compile::samples_of_pass(s)));
  text += line("ranks", mesh.ranks() == 1 ? "one" : fmt::format("{}: {}", mesh.ranks(), to_string(mesh)));
  const auto digits = [](size_t count) { return base::group_digits(static_cast<int64_t>(count)); };
  text += line("graphs", fmt::format("forward {}, with its gradients {}, update {}, evaluate {}",
                                     how_many(forward.ops().size(), "operation"), digits(graphs.micro->ops().size()),
                                     digits(graphs.update->ops().size()), digits(graphs.evaluate->ops().size())));
  constexpr size_t kShown = 8;  // stages
  for (size_t i = 0; i < stages.size() && i < kShown; ++i)
    text += line(stages.size() == 1 ? "program" : fmt::format("stage {}", i), stage_in_words(stages[i]));
  if (stages.size() > kShown) text += line("", fmt::format("and {} more", how_many(stages.size() - kShown, "stage")));
  text += "\nDetails, each with `--pass NAME`:\n";
  for (const Pass& pass : kPasses) text += fmt::format("  {:<16}{}\n", pass.name, fold(pass.about, kColumns, 18));
  return text;
}

// For the number of ranks of the plan; if that is one, for 2, 4 and 8.
std::string print_strategies(const config::Settings& s) {
  Progress progress("comparing strategies");
  std::string text;
  const int64_t ranks = s.parallel.ranks;
  for (int64_t n : ranks > 1 ? std::vector<int64_t>{ranks} : std::vector<int64_t>{2, 4, 8})
    text += "\n" + compile::print(compile::strategy_costs(s, n), n);
  return text;
}

std::string print_tasks(const std::vector<program::Program>& stages, const config::Settings& s,
                        const std::string& svg) {
  const plan::Schedule schedule = schedule_of(stages, s);
  const plan::Timeline equal = plan::timeline(schedule),
                       real = plan::timeline(schedule, costs_of(schedule, stages, 1e9));
  if (!svg.empty())
    base::write_output(svg, plan::svg_picture(schedule, real, "Gflop", 10'000, model_in_words(s.model)));
  return fmt::format("chunks alike    {}\nby their flops  {}\n\n{}", plan::headline(schedule, equal),
                     plan::headline(schedule, real, "Gflop"), plan::text_picture(schedule));
}

void run(const RunOptions& options, const std::string& pass, bool all, const std::string& svg,
         const BytesOptions& bytes) {
  if (!pass.empty() && std::ranges::find(kPasses, pass, &Pass::name) == std::end(kPasses))
    throw base::UserError("explain", "unknown pass \"{}\"; known passes: {}", pass, pass_names());
  if (bytes.asked && (!pass.empty() || !svg.empty()))
    throw base::UserError("explain", "--bytes cannot be combined with --pass or --svg");
  config::Resolved resolved = read_run(options, bytes.asked && bytes.steps > 0 ? RunsOn::this_machine : RunsOn::any);
  const std::array<base::Output, 2> outputs = {{{"--svg", svg}, {"--csv", bytes.csv}}};
  refuse_run_files("explain", options, resolved.settings, outputs);
  train::complete_from_data(resolved);
  const config::Settings& s = resolved.settings;
  if (bytes.asked) return write_out("{}", explain_bytes(s, programs_of(s), bytes));
  std::string text;  // printed when all is made, so that it does not mix with the line of the progress
  const auto show = [&](std::string_view name, const auto& print) {
    if (pass == name) text += print();
  };
  graph::StateTable states;
  const graph::Graph forward = models::build_forward(s, states);
  show("graph", [&] { return graph::print(forward); });
  const models::Graphs graphs = models::build_training(s);
  show("differentiate", [&] { return graph::print(*graphs.micro); });
  show("update", [&] { return graph::print(*graphs.update); });
  show("evaluate", [&] { return graph::print(*graphs.evaluate); });
  show("states", [&] { return graph::print(*graphs.states); });
  show("plan", [&] { return plan::print(compile::plan_of(s)); });
  const bool staged = s.parallel.pipe > 1;
  bool outlined = false;
  const std::vector<program::Program> made = programs_of(s, [&](std::string_view name, const program::Program& p) {
    const bool whole = name == "partition" || !staged;
    outlined |= pass == name && !all;
    show(name, [&] {
      return (whole ? "" : fmt::format("stage {}\n", p.stage)) + (all ? program::print(p) : program::print_outline(p));
    });
  });
  if (outlined) text += "every buffer and instruction: --all\n";
  show(kTasks, [&] { return print_tasks(made, s, svg); });
  if (!svg.empty() && pass != kTasks) print_tasks(made, s, svg);
  show(kSent, [&] {
    std::string sent;
    for (const program::Program& p : made)
      sent += (staged ? fmt::format("stage {}\n", p.stage) : "") + program::print_communication(p);
    return sent + print_strategies(s);
  });
  if (pass.empty()) text = overview(s, graphs, forward, made);
  write_out("{}", text);
}

}  // namespace

void add_explain(Command& kintsugi) {
  const Verb verb =
      kintsugi.add_verb("explain", "Prints the compiled program of a run.toml, after each pass or one pass");
  const auto options = add_run_options(verb);
  const auto pass = std::make_shared<std::string>();
  const Option passed = verb.text("--pass", *pass, fmt::format("What one pass makes: {}", pass_names()));
  const auto all = std::make_shared<bool>(false);
  verb.flag("--all", *all, "With --pass: print every buffer and instruction").needs(passed);
  const auto svg = std::make_shared<std::string>();
  verb.text("--svg", *svg, "Write the pipeline schedule as SVG, each task as long as its FLOPs").type_name("FILE");
  const auto bytes = std::make_shared<BytesOptions>();
  const Option asked = verb.flag("--bytes", bytes->asked,
                                 "Print the bytes and FLOPs of each instruction, the lower bound on its time on this "
                                 "machine, and the measured time");
  verb.integer("--steps", bytes->steps, {0, 1'000'000}, "With --bytes: number of measured steps; 0: none")
      .needs(asked)
      .show_default();
  verb.text("--csv", bytes->csv, "With --bytes: write a CSV row per instruction").needs(asked).type_name("FILE");
  verb.run([options, pass, all, svg, bytes] {
    require_one_process("explain");
    run(*options, *pass, *all, *svg, *bytes);
  });
}

}  // namespace kintsugi::app
