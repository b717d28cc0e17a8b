#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <thread>

#include "app/fold.h"
#include "app/model_in_words.h"
#include "app/plan_scaling.h"
#include "app/plan_search.h"
#include "app/plan_time.h"
#include "app/program_of.h"
#include "app/program_schedule.h"
#include "app/progress.h"
#include "app/ranks.h"
#include "app/run_options.h"
#include "app/standard_streams.h"
#include "app/table.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/checkpoint/snapshot.h"
#include "kintsugi/compile/fit.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/batch_warmup.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/plan/schedule_picture.h"
#include "kintsugi/program/describe.h"
#include "kintsugi/program/memory_table.h"
#include "kintsugi/program/stage_words.h"
#include "kintsugi/program/walk.h"
#include "kintsugi/report/memory_picture.h"
#include "kintsugi/run/device_side.h"
#include "kintsugi/train/corpus.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::app {
namespace {

using program::MemoryTable;
using program::Program;

struct PlanOptions {
  std::string csv, svg;
  std::optional<int> stage;
  TimeOptions time;
  bool search = false;
  std::string devices;  // a number, or several
  double budget = 55;
};

struct Stage {
  const Program* program;
  MemoryTable memory;
  program::ModelShare share;
  std::vector<int> ranks;
};

std::vector<Stage> stages_of(const std::vector<Program>& programs) {
  std::vector<Stage> list;
  for (const Program& p : programs)
    list.push_back({&p, program::memory_table(p), program::model_share(p), program::ranks_of(p)});
  return list;
}

std::string bytes_in_words(int64_t bytes) {
  return base::format_bytes(static_cast<uint64_t>(bytes));
}

// A row of print_stages: the layers follow in its line, or below it.
std::string with_layers(const std::string& row, const std::string& layers) {
  constexpr int kIndent = 6;
  if (std::ssize(row) + std::ssize(layers) <= kColumns) return row + layers + "\n";
  return row.substr(0, row.find_last_not_of(' ') + 1) + "\n" + std::string(kIndent, ' ') +
         fold(layers, kColumns, kIndent) + "\n";
}

// What each stage holds; checks again that no layer is lost or held twice.
std::string print_stages(const std::vector<Stage>& stages, int64_t layers) {
  std::vector<int> all;
  int64_t parameters = 0;
  std::string text = "stages\n";
  size_t widest = 0;
  for (const Stage& s : stages) widest = std::max(widest, program::list_of(s.ranks).size());
  for (const Stage& s : stages) {
    all.insert(all.end(), s.share.layers.begin(), s.share.layers.end());
    parameters += s.share.parameters;
    const std::string row = fmt::format("  {:<3} ranks {:<{}}  {:>15} parameters  ", s.program->stage,
                                        program::list_of(s.ranks), widest, base::group_digits(s.share.parameters));
    text += with_layers(row, program::layers_in_words(s.share.layers, layers));
  }
  std::sort(all.begin(), all.end());
  for (int64_t layer = -1; layer <= layers; ++layer) {
    const auto num_stages = std::count(all.begin(), all.end(), static_cast<int>(layer));
    // A head may have no weights of its own, and what reads numbers has no embedding.
    base::require(num_stages == 1 || (num_stages == 0 && (layer == layers || layer == -1)), "plan",
                  "layer {} is held by {} stages", layer, num_stages);
  }
  const std::string row =
      fmt::format("  {:<3}       {:<{}}  {:>15} parameters  ", "all", "", widest, base::group_digits(parameters));
  return text + with_layers(row, program::layers_in_words(all, layers));
}

// A column of a table about stages, in bytes.
struct BytesOfStages {
  std::string_view name;
  std::function<int64_t(const Stage&)> of;
};

// Of each stage a row in bytes, and one in words.
std::string table_of(const std::vector<Stage>& stages, const std::vector<BytesOfStages>& columns) {
  std::vector<std::vector<std::string>> rows = {{"stage"}};
  for (const BytesOfStages& column : columns) rows[0].emplace_back(column.name);
  for (const Stage& s : stages) {
    std::vector<std::string> digits = {fmt::format("{}", s.program->stage)}, words = {""};
    for (const BytesOfStages& column : columns) {
      const int64_t bytes = column.of(s);
      digits.push_back(base::group_digits(bytes));
      words.push_back(bytes_in_words(bytes));
    }
    rows.push_back(std::move(digits));
    rows.push_back(std::move(words));
  }
  return table_within(kColumns, rows);
}

// One table of what persists from step to step, and one of the rest, since all columns fit no terminal.
std::string print_memory(const std::vector<Stage>& stages) {
  std::vector<BytesOfStages> states, rest;
  for (const program::MemoryPart& part : program::memory_parts())
    if (part.always ||
        std::any_of(stages.begin(), stages.end(), [&](const Stage& s) { return s.memory.*part.bytes > 0; }))
      (part.state ? states : rest).push_back({part.name, [&](const Stage& s) { return s.memory.*part.bytes; }});
  states.push_back({"states", [](const Stage& s) {
                      int64_t sum = 0;
                      for (const program::MemoryPart& part : program::memory_parts())
                        if (part.state) sum += s.memory.*part.bytes;
                      return sum;
                    }});
  // Bytes that are offloaded, and take no memory.
  if (std::any_of(stages.begin(), stages.end(), [](const Stage& s) { return s.program->file_bytes > 0; }))
    states.push_back({"in its file", [](const Stage& s) { return s.program->file_bytes; }});
  rest.push_back({"total", [](const Stage& s) { return s.program->bytes(); }});
  return "memory of a rank, in bytes: states\n" + table_of(stages, states) +
         "memory of a rank, in bytes: the rest, and the total\n" + table_of(stages, rest);
}

// What a rank beside a device pins of the host's memory; "" on the processor.
std::string print_pinned(const std::vector<Stage>& stages) {
  if (std::all_of(stages.begin(), stages.end(), [](const Stage& s) { return !s.program->on_device; })) return "";
  const auto inputs = [](const Stage& s) { return run::DeviceSide::kSlots * s.program->staged_bytes; };
  const auto offloaded = [](const Stage& s) { return s.program->file_bytes; };
  const auto copies = [](const Stage&) { return run::DeviceSide::kBounce + run::DeviceSide::kAnswers; };
  std::map<const Stage*, int64_t> snapshots;  // the most of its ranks
  for (const Stage& s : stages)
    for (const int rank : s.ranks)
      snapshots[&s] = std::max(snapshots[&s], checkpoint::snapshot_places(*s.program, rank).bytes);
  const auto snapshot = [&](const Stage& s) { return snapshots.at(&s); };
  return "memory that a rank pins on the host, in bytes\n" +
         table_of(stages,
                  {{"inputs", inputs},
                   {"offloaded", offloaded},
                   {"copies", copies},
                   {"checkpoint", snapshot},
                   {"total", [&](const Stage& s) { return inputs(s) + offloaded(s) + copies(s) + snapshot(s); }}});
}

// The arena compared with the largest sum of bytes live at one time, and when that is.
std::string print_packing(const std::vector<Stage>& stages) {
  std::vector<std::vector<std::string>> rows = {{"stage", "arena", "lower bound", "over it"}};
  for (const Stage& s : stages) {
    const program::CallList& list = program::largest_list(*s.program);
    const auto over = static_cast<double>(list.arena_bytes - list.lower_bound_bytes);
    rows.push_back(
        {fmt::format("{}", s.program->stage), base::group_digits(list.arena_bytes),
         base::group_digits(list.lower_bound_bytes),
         fmt::format("{:.2f}%", 100 * over / static_cast<double>(std::max<int64_t>(1, list.lower_bound_bytes)))});
  }
  std::string text = "packing\n" + table_within(kColumns, rows) + "most is needed in\n";
  for (const Stage& s : stages) {
    const program::VisitedCall peak = program::walk(*s.program, program::largest_list(*s.program))[s.memory.peak.call];
    text += fmt::format("  {:<5}  {}, instruction {}: {}\n", s.program->stage, program::describe(*s.program, peak.call),
                        s.memory.peak.instruction, name_of(peak.body.instructions[s.memory.peak.instruction]));
  }
  return text;
}

// The steps of [train] batch_warmup, and the most that a rank's arena holds in them; "" without any.
std::string print_batch_warmup(const config::Settings& s, const std::vector<Program>& programs) {
  if (s.train.batch_warmup.empty()) return "";
  std::vector<std::vector<std::string>> rows = {{"steps", "samples", "micro-batches", "bytes live at the peak"}};
  const auto add = [&](const std::string& steps, int64_t samples) {
    const int64_t count = samples / compile::samples_of_pass(s);
    int64_t bytes = 0;
    for (const Program& p : programs)
      for (const program::CallList& list : p.lists)
        if (list.step == program::Step::train && list.micro_batches == (samples == s.train.global_batch ? 0 : count))
          bytes = std::max(bytes, list.lower_bound_bytes);
    rows.push_back({steps, fmt::format("{}", samples), fmt::format("{}", count), base::group_digits(bytes)});
  };
  int64_t first = 1;
  for (const config::BatchStage& stage : config::batch_stages(s.train)) {
    const int64_t last = first + stage.steps - 1;
    add(first == last ? fmt::format("{}", first) : fmt::format("{} to {}", first, last), stage.samples);
    first = last + 1;
  }
  add(fmt::format("from {}", first), s.train.global_batch);
  return "batch warm-up, in the memory of the full step\n" + table_within(kColumns, rows);
}

std::string print_schedule(const plan::Schedule& schedule, const std::vector<Program>& programs) {
  const plan::Timeline unit = plan::timeline(schedule), real = plan::timeline(schedule, costs_of(schedule, programs));
  const std::string alike =
      fmt::format("{:.2f}% if every forward, input gradient and weight gradient costs the same ({:.2f}% as published)",
                  100 * plan::bubble(unit, 0), 100 * plan::published_bubble(schedule));
  std::string text = "bubble\n  " + fold(alike, kColumns, 2) + "\n";
  std::vector<std::string> by_stage;
  for (int s = 0; s < schedule.stages; ++s) by_stage.push_back(fmt::format("{:.2f}%", 100 * plan::bubble(real, s)));
  text += "  " +
          fold(fmt::format("{} by the flops of the chunks, stage by stage", fmt::join(by_stage, " ")), kColumns, 2) +
          "\n";
  return text + "schedule\n" + plan::text_picture(schedule);
}

std::string csv_of(const std::vector<Stage>& stages, int64_t layers) {
  std::string text = "rank,stage,layers,parameters_of_stage";
  for (const program::MemoryPart& part : program::memory_parts()) {
    std::string name(part.name);
    std::replace(name.begin(), name.end(), ' ', '_');
    text += "," + name;
  }
  text += ",total,states,arena,arena_of_train,lower_bound_of_train\n";
  std::vector<std::pair<int, std::string>> rows;
  for (const Stage& s : stages) {
    std::string row = fmt::format(",{},\"{}\",{}", s.program->stage, program::layers_in_words(s.share.layers, layers),
                                  s.share.parameters);
    for (const program::MemoryPart& part : program::memory_parts()) row += fmt::format(",{}", s.memory.*part.bytes);
    const program::CallList& list = program::largest_list(*s.program);
    row += fmt::format(",{},{},{},{},{}\n", s.program->bytes(), s.program->state_bytes, s.program->arena_bytes,
                       list.arena_bytes, list.lower_bound_bytes);
    for (int rank : s.ranks) rows.push_back({rank, row});
  }
  std::sort(rows.begin(), rows.end());
  for (const auto& [rank, row] : rows) text += fmt::format("{}", rank) + row;
  return text;
}

void warn(const config::Settings& s, const std::vector<Program>& programs) {
  if (!memory_limit_of(s)) return;
  Progress progress("looking for what would fit");
  const auto excess =
      compile::excess(s, programs, train::machine_of(s), -1,
                      {.trying = [&](int64_t done, int64_t all) { progress.count(done, all, "changes"); }});
  progress.finish();
  if (!excess) return;
  write_err("warning: train would refuse this: {}\n", fmt::join(compile::describe(*excess), "\n  "));
}

// What a search does not do is said, not left out.
void refuse_beside_search(const PlanOptions& options) {
  if (options.time.cluster.empty())
    throw base::UserError("plan", "--search needs --cluster FILE, the machine that it looks for layouts on");
  const std::array<std::pair<std::string_view, bool>, 8> others = {
      {{"--csv", !options.csv.empty()},
       {"--times", !options.time.times.empty()},
       {"--trace", !options.time.trace.empty()},
       {"--timeline", !options.time.timeline.empty()},
       {"--slow-rank", options.time.slow_rank.has_value()},
       {"--node-failures", options.time.node_failures.has_value()},
       {"--stage", options.stage.has_value()},
       {"--software", options.time.software != "kintsugi"}}};
  for (const auto& [name, given] : others)
    if (given) throw base::UserError("plan", "--search takes no {}: plan the layout that it finds with {}", name, name);
}

void refuse_beside_scaling(const PlanOptions& options) {
  const std::array<std::pair<std::string_view, bool>, 6> others = {
      {{"--csv", !options.csv.empty()},
       {"--trace", !options.time.trace.empty()},
       {"--stage", options.stage.has_value()},
       {"--timeline", !options.time.timeline.empty()},
       {"--slow-rank", options.time.slow_rank.has_value()},
       {"--node-failures", options.time.node_failures.has_value()}}};
  for (const auto& [name, given] : others)
    if (given)
      throw base::UserError("plan", "--devices without --search takes no {}: plan one number of devices with {}", name,
                            name);
}

// A run that leaves the device open is planned for that of the cluster: a card, unless its file says how many threads a
// rank has. What is here, as on a login node, does not matter.
void take_device(config::Settings& s, const std::string& cluster) {
  if (config::device(s.parallel) != config::Device::automatic || s.train.dtype == name_of(tensor::DType::f64)) return;
  const bool is_card = simulate::read_cluster(cluster).device.threads == 0;
  s.parallel.device = name_of(is_card ? config::Device::cuda : config::Device::cpu);
}

// A software that splits optimizer state over `context` does so without a key.
void take_software(config::Settings& s, const std::string& name) {
  if (simulate::software_named(name).shards_context && s.parallel.context > 1 && s.parallel.zero > 0)
    s.parallel.shard_context = true;
}

// The run to plan; the cluster of the options is that of the run where it is not given.
config::Resolved read_planned(std::string_view verb, const RunOptions& run_options, PlanOptions& options) {
  config::Resolved resolved = read_run(run_options, RunsOn::any);
  if (options.time.cluster.empty()) options.time.cluster = resolved.settings.parallel.cluster;
  const std::array<base::Output, 5> outputs = {{{"--csv", options.csv},
                                                {"--svg", options.svg},
                                                {"--times", options.time.times},
                                                {"--trace", options.time.trace},
                                                {"--timeline", options.time.timeline}}};
  refuse_run_files(verb, run_options, resolved.settings, outputs, options.time.cluster);
  train::complete_from_data(resolved);
  if (!options.time.cluster.empty()) take_device(resolved.settings, options.time.cluster);
  take_software(resolved.settings, options.time.software);
  return resolved;
}

void search_layouts(const config::Settings& s, const PlanOptions& options, const std::vector<int64_t>& devices) {
  plan_search(s, {.cluster = options.time.cluster,
                  .devices = devices.empty() ? std::nullopt : std::optional(devices[0]),
                  .seconds = options.budget,
                  .svg = options.svg});
  require_printed();
}

void scale_up(const config::Settings& s, const PlanOptions& options, const std::vector<int64_t>& devices) {
  plan_scaling(s, {.cluster = options.time.cluster,
                   .software = options.time.software,
                   .devices = devices,
                   .svg = options.svg,
                   .times = options.time.times});
  require_printed();
}

void note_verb(std::string_view verb, std::string_view old) {
  write_err("note: {} is now a separate verb: use kintsugi {}\n", old, verb);
}

void run(const RunOptions& run_options, PlanOptions options) {
  const config::Resolved resolved = read_planned("plan", run_options, options);
  const config::Settings& s = resolved.settings;
  const std::vector<int64_t> devices =
      options.devices.empty() ? std::vector<int64_t>() : numbers_of_devices(options.devices);
  if (options.search) {
    refuse_beside_search(options);
    if (devices.size() > 1) throw base::UserError("plan", "--search takes one number of --devices");
    note_verb("search", "plan --search");
    return search_layouts(s, options, devices);
  }
  if (!devices.empty()) {
    refuse_beside_scaling(options);
    note_verb("scaling", "plan --devices");
    return scale_up(s, options, devices);
  }
  if (options.stage && *options.stage >= s.parallel.pipe)
    throw base::UserError("plan", "--stage {}: there {} {} stage{}, from 0 on", *options.stage,
                          s.parallel.pipe == 1 ? "is" : "are", s.parallel.pipe, s.parallel.pipe == 1 ? "" : "s");
  const std::vector<Program> programs = programs_of(s, simulate::software_named(options.time.software));
  const std::vector<Stage> stages = stages_of(programs);
  std::optional<PlannedTime> time;  // before anything is printed, as the cluster may be refused
  if (!options.time.cluster.empty()) time = plan_time(s, programs, options.time);
  write_out("{}{}{}", print_stages(stages, s.model.layers), print_memory(stages) + print_pinned(stages),
            print_packing(stages) + print_batch_warmup(s, programs));
  if (stages.size() > 1) write_out("{}", print_schedule(schedule_of(programs, s), programs));
  if (time) {
    write_out("{}", time->text);
    write_time(*time, programs, options.time);
  }
  if (!options.csv.empty()) base::write_output(options.csv, csv_of(stages, s.model.layers));
  if (!options.svg.empty()) {
    // Without --stage, the stage that needs most.
    const auto most = std::max_element(programs.begin(), programs.end(),
                                       [](const Program& a, const Program& b) { return a.bytes() < b.bytes(); });
    const Program& shown = options.stage ? programs[static_cast<size_t>(*options.stage)] : *most;
    const std::string stage = stages.size() == 1 ? "" : fmt::format(", stage {} of {}", shown.stage, stages.size());
    const std::string title = fmt::format("{}. Memory over a step{}", model_in_words(s.model), stage);
    const auto limit = memory_limit_of(s);
    base::write_output(options.svg, report::memory_picture(shown, title, limit ? limit->bytes : 0));
  }
  require_printed();
  warn(s, programs);
}

}  // namespace

void add_plan(Command& kintsugi) {
  const Verb verb =
      kintsugi.add_verb("plan", "Prints the exact memory of each rank, the pipeline bubble and the step time");
  const auto run_options = add_run_options(verb);
  const auto options = std::make_shared<PlanOptions>();
  verb.text("--csv", options->csv, "Write a CSV row per rank, in bytes").type_name("FILE");
  verb.text("--svg", options->svg, "Write a rank's memory over a step as SVG").type_name("FILE");
  const auto cluster = verb.text("--cluster", options->time.cluster,
                                 "Predict the step time, and its breakdown, on the cluster described by this file; "
                                 "default: [parallel] cluster")
                           .type_name("FILE");
  verb.text("--software", options->time.software, "A software profile: how the run's software differs from Kintsugi")
      .type_name("NAME")
      .needs(cluster);
  verb.text("--times", options->time.times, "Write a CSV row per stage, in seconds").type_name("FILE").needs(cluster);
  verb.text("--trace", options->time.trace, "Write a trace for ui.perfetto.dev").type_name("FILE").needs(cluster);
  verb.text("--timeline", options->time.timeline, "Write the timeline of the stages as SVG")
      .type_name("FILE")
      .needs(cluster);
  const auto slow_rank = verb.integer("--slow-rank", options->time.slow_rank, {0, range_of("parallel.ranks").max - 1},
                                      "Predict a step in which the kernels of this rank are slower")
                             .type_name("RANK")
                             .needs(cluster);
  verb.number("--slower", options->time.slower, {.min = 0, .max = 1e6}, "Slowdown of that rank in percent; default: 10")
      .type_name("PERCENT")
      .needs(slow_rank);
  verb.number("--node-failures", options->time.node_failures, {.min = 1, .max = 1e7},
              "Mean hours between failures of a node: predict the goodput and propose a checkpoint interval; default: "
              "the cluster file's")
      .type_name("HOURS")
      .needs(cluster);
  verb.number("--restart", options->time.restart, {.min = 0, .max = 1e5},
              "Minutes from a failure until training continues; default: the cluster file's, or 10")
      .type_name("MINUTES")
      .needs(cluster);
  verb.flag("--search", options->search,
            "Search for the fastest layouts on --cluster; --svg then draws their time and memory");
  verb.text("--devices", options->devices,
            "With --search: number of devices; default: the run's ranks, or the whole cluster. Otherwise a list, e.g. "
            "8,64,512: predict the step time with as many replicas as fit; --svg draws it")
      .type_name("N,...")
      .needs(cluster);
  verb.number("--budget", options->budget, {.min = 0, .max = 86400},
              "Time limit of the search in seconds; it then reports a bound on layouts not simulated; 0: no limit")
      .type_name("SECONDS")
      .needs(cluster);
  verb.integer("--stage", options->stage, {0, range_of("parallel.pipe").max},
               "The stage to draw; default: the one that needs the most memory")
      .type_name("S");
  verb.run([run_options, options] {
    require_one_process("plan");
    run(*run_options, *options);
  });
}

void add_search(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("search", "Searches for the fastest layouts of a run on a cluster");
  const auto run_options = add_run_options(verb);
  const auto options = std::make_shared<PlanOptions>();
  verb.text("--cluster", options->time.cluster, "Cluster file; default: [parallel] cluster").type_name("FILE");
  verb.text("--devices", options->devices, "Number of devices; default: the run's ranks, or the whole cluster")
      .type_name("N");
  verb.number("--budget", options->budget, {.min = 0, .max = 86400},
              "Time limit in seconds; the search then reports a bound on layouts not simulated; 0: no limit")
      .type_name("SECONDS")
      .show_default();
  verb.text("--svg", options->svg, "Write time and memory of the layouts as SVG").type_name("FILE");
  verb.run([run_options, options] {
    require_one_process("search");
    const config::Resolved resolved = read_planned("search", *run_options, *options);
    if (options->time.cluster.empty())
      throw base::UserError("search", "no cluster given; use --cluster FILE or set parallel.cluster");
    const auto devices =
        options->devices.empty() ? std::vector<int64_t>() : numbers_of_devices(options->devices, "search", "--devices");
    if (devices.size() > 1) throw base::UserError("search", "--devices takes one number");
    search_layouts(resolved.settings, *options, devices);
  });
}

void add_scaling(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("scaling", "Predicts how a run's layout scales on a cluster");
  const auto run_options = add_run_options(verb);
  const auto options = std::make_shared<PlanOptions>();
  verb.text("--cluster", options->time.cluster, "Cluster file; default: [parallel] cluster").type_name("FILE");
  verb.text("--devices", options->devices, "Numbers of devices, e.g. 8,64,512; each runs as many replicas as fit")
      .required()
      .type_name("N,...");
  verb.text("--software", options->time.software, "A software profile: how the run's software differs from Kintsugi")
      .type_name("NAME");
  verb.text("--svg", options->svg, "Draws both ways of scaling").type_name("FILE");
  verb.text("--times", options->time.times, "Write a CSV row per number of devices, in seconds").type_name("FILE");
  verb.run([run_options, options] {
    require_one_process("scaling");
    const config::Resolved resolved = read_planned("scaling", *run_options, *options);
    if (options->time.cluster.empty())
      throw base::UserError("scaling", "no cluster given; use --cluster FILE or set parallel.cluster");
    scale_up(resolved.settings, *options, numbers_of_devices(options->devices, "scaling", "--devices"));
  });
}

}  // namespace kintsugi::app
