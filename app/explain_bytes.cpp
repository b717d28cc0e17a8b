#include "app/explain_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "app/fold.h"
#include "app/progress.h"
#include "app/table.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/program/describe.h"
#include "kintsugi/program/walk.h"
#include "kintsugi/train/profile_run.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::app {
namespace {

using program::Instruction;
using program::Program;

constexpr size_t kMostFloors = 16, kMostName = 42;  // in a table
constexpr double kLeastWeight = 2e-3;               // of the whole, of an operation that is shown
constexpr int64_t kStepsBefore = 2;                 // steps before those that are measured

// The totals of some instructions in a step of a rank.
struct StepWork {
  double calls = 0, bytes = 0, flops = 0;
  double floor = 0;     // seconds, each instruction at the limit that it is nearer to
  double by_flops = 0;  // of these, at that of arithmetic
  double products = 0;  // seconds of the products alone, at the rate of their unit
  double measured = 0;  // seconds

  void add(const StepWork& w, double times) {
    calls += times * w.calls, bytes += times * w.bytes, flops += times * w.flops, floor += times * w.floor;
    by_flops += times * w.by_flops, products += times * w.products, measured += times * w.measured;
  }
  double weight() const { return std::max(floor, measured); }
};

// A kernel of a body.
struct KernelRow {
  const Program* program = nullptr;
  const program::Body* body = nullptr;
  size_t at = 0;
  StepWork work;  // of all calls of a step

  const Instruction& instruction() const { return body->instructions[at]; }
  // Its first output, or its subject.
  const program::Buffer& value() const {
    const Instruction& i = instruction();
    return program->buffer(i.outs.empty() ? program::value_of(i) : i.outs[0]);
  }
};

StepWork step_work(const Instruction& i, double calls, const train::Limits& limits) {
  const double arithmetic = i.cost.flops / limits.flops_of(i.kernel), memory = i.cost.memory_bytes / limits.bytes;
  return {.calls = calls,
          .bytes = calls * i.cost.memory_bytes,
          .flops = calls * i.cost.flops,
          .floor = calls * std::max(arithmetic, memory),
          .by_flops = arithmetic > memory ? calls * arithmetic : 0,
          .products = train::is_product(i.kernel) ? calls * arithmetic : 0};
}

// In the order of the stages.
std::vector<KernelRow> rows_of(const std::vector<Program>& stages, const train::Limits& limits) {
  std::vector<KernelRow> rows;
  for (const Program& p : stages) {
    const program::CallList& list = p.list(program::Step::train);
    const std::vector<int64_t> calls = program::num_calls(p, list);
    for (const program::VisitedCall& first : program::first_calls(p, list))
      for (size_t at = 0; at < first.body.instructions.size(); ++at) {
        const Instruction& i = first.body.instructions[at];
        if (i.kind != program::Kind::compute) continue;
        const auto times = static_cast<double>(calls[static_cast<size_t>(first.call.body)]);
        rows.push_back({.program = &p, .body = &first.body, .at = at, .work = step_work(i, times, limits)});
      }
  }
  return rows;
}

// The time of each, averaged over the ranks of its stage.
void add_measured(const train::ProfiledRun& run, std::vector<KernelRow>& rows) {
  std::map<std::tuple<int, std::string_view, int64_t>, KernelRow*> found;
  std::map<int, double> ranks;
  for (KernelRow& row : rows) found[{row.program->stage, row.body->name, static_cast<int64_t>(row.at)}] = &row;
  for (const profile::RankProfile& r : run.profile.of_ranks) ranks[r.stage] += 1;
  for (const profile::RankProfile& r : run.profile.of_ranks)
    for (const profile::InstructionTime& i : r.instructions)
      if (const auto row = found.find({r.stage, i.body, i.at}); row != found.end())
        row->second->work.measured += i.seconds / ranks[r.stage];
}

std::string times_text(double part, double of) {
  return of > 0 && part > 0 ? base::three_digits(part / of) + "x" : "";
}

using Cells = std::vector<std::string>;

// The columns of `floors`, for all calls or per call.
void add_floors(Cells& cells, const StepWork& w, double divided_by, bool measured) {
  cells.push_back(base::format_time(w.floor / divided_by));
  cells.push_back(2 * w.by_flops > w.floor ? "flops" : "memory");
  if (!measured) return;
  cells.push_back(base::format_time(w.measured / divided_by));
  cells.push_back(times_text(w.measured, w.floor));
}

Cells floors(Cells cells, bool measured) {
  cells.insert(cells.end(), {"floor", "limit"});
  if (measured) cells.insert(cells.end(), {"measured", "/ floor"});
  return cells;
}

std::string flops_text(double flops) {
  return flops > 0 ? base::format_rate(flops, "FLOP") : "";
}

// Sums of the rows with equal keys, the heaviest first.
template <typename Key>
std::vector<std::pair<Key, StepWork>> grouped(const std::vector<KernelRow>& rows, size_t stages,
                                              const std::function<Key(const KernelRow&)>& key) {
  std::map<Key, StepWork> sums;
  for (const KernelRow& row : rows) sums[key(row)].add(row.work, 1.0 / static_cast<double>(stages));
  std::vector<std::pair<Key, StepWork>> list(sums.begin(), sums.end());
  std::ranges::stable_sort(list, std::ranges::greater(), [](const auto& entry) { return entry.second.weight(); });
  return list;
}

std::string operation_floors(const std::vector<KernelRow>& rows, size_t stages, bool measured) {
  using Key = std::pair<std::string, std::string>;
  const auto groups = grouped<Key>(rows, stages, [](const KernelRow& row) {
    return Key(row.instruction().kernel, name_of(row.instruction().phase));
  });
  StepWork all, rest;
  for (const auto& [key, work] : groups) all.add(work, 1);
  std::vector<Cells> cells = {floors({"operation", "phase", "calls", "bytes", "flops"}, measured)};
  const auto add = [&](const std::string& name, const std::string& phase, const StepWork& work) {
    Cells& line =
        cells.emplace_back(Cells{name, phase, number_cell(work.calls), bytes_cell(work.bytes), flops_text(work.flops)});
    add_floors(line, work, 1, measured);
  };
  for (const auto& [key, work] : groups)
    work.weight() < kLeastWeight* all.weight() ? rest.add(work, 1) : add(key.first, key.second, work);
  if (rest.calls > 0) add("all else", "", rest);
  add("all", "", all);
  return fmt::format("\nby operation and phase, in a step of a rank{}\n",
                     stages > 1 ? ", the mean of all stages" : "") +
         table_within(kColumns, cells);
}

// Instructions that differ only in their layer share a line.
std::string instruction_floors(const std::vector<KernelRow>& rows, size_t stages, bool measured) {
  using Key = std::tuple<std::string, std::string, std::string, double, double>;
  const auto groups = grouped<Key>(rows, stages, [](const KernelRow& row) {
    const Instruction& i = row.instruction();
    return Key(i.kernel, name_of(i.phase), to_string(row.value().type.shape), i.cost.memory_bytes, i.cost.flops);
  });
  std::vector<Cells> cells = {floors({"instruction", "calls", "bytes"}, measured)};
  const size_t shown = std::min(groups.size(), kMostFloors);
  for (size_t n = 0; n < shown; ++n) {
    const auto& [key, work] = groups[n];
    const auto& [kernel, phase, shape, bytes, flops] = key;
    const std::string name = base::one_line(fmt::format("{} {} {}", kernel, phase, shape), kMostName);
    Cells& line = cells.emplace_back(Cells{name, number_cell(work.calls), bytes_cell(work.bytes / work.calls)});
    add_floors(line, work, work.calls, measured);
  }
  return fmt::format("\nthe heaviest of {} instructions, equal ones of all layers together, with what a call takes\n",
                     base::group_digits(std::ssize(rows))) +
         table_within(kColumns, cells);
}

std::string floors_table(const std::vector<KernelRow>& rows, const std::vector<Program>& stages,
                         const train::ProfiledRun* run) {
  std::vector<Cells> cells = {{"stage", "bytes", "flops", "floor", "products"}};
  if (run) cells[0].insert(cells[0].end(), {"kernels", "step", "/ floor", "/ products"});
  for (const Program& p : stages) {
    StepWork all;
    for (const KernelRow& row : rows)
      if (row.program == &p) all.add(row.work, 1);
    Cells& line = cells.emplace_back(Cells{fmt::format("{}", p.stage), bytes_cell(all.bytes),
                                           base::format_rate(all.flops, "FLOP"), base::format_time(all.floor),
                                           base::format_time(all.products)});
    if (!run) continue;
    double seconds = 0, ranks = 0;
    for (const profile::RankProfile& r : run->profile.of_ranks)
      if (r.stage == p.stage) seconds += r.seconds, ranks += 1;
    line.insert(line.end(), {base::format_time(all.measured), base::format_time(seconds / ranks),
                             times_text(seconds / ranks, all.floor), times_text(seconds / ranks, all.products)});
  }
  return "\nthe floor of a step: of each instruction the time of its bytes or of its flops, whichever is longer\n" +
         table_within(kColumns, cells);
}

std::string floors_csv(const std::vector<KernelRow>& rows, bool measured) {
  std::string text =
      "stage,body,instruction,operation,phase,layer,value,calls,bytes,flops,floor_seconds,measured_seconds\n";
  for (const KernelRow& row : rows) {
    const Instruction& i = row.instruction();
    text += fmt::format("{},{},{},{},{},{},{},{:.9g},{:.9g},{:.9g},{:.9g},{}\n", row.program->stage, row.body->name,
                        row.at, i.kernel, name_of(i.phase), i.layer, row.value().name, row.work.calls, row.work.bytes,
                        row.work.flops, row.work.floor, measured ? fmt::format("{:.9g}", row.work.measured) : "");
  }
  return text;
}

train::ProfiledRun measured_run(const config::Settings& s, const std::vector<Program>& stages, int64_t steps) {
  Progress progress("measuring");
  return train::profile_run({.settings = s,
                             .stages = stages,
                             .warm_up = kStepsBefore,
                             .steps = steps,
                             .now = [&](std::string_view what) { progress.tell(std::string(what)); },
                             .progress = [&](int64_t done, int64_t all) { progress.count(done, all, "steps"); }},
                            train::make_worlds(s));
}

}  // namespace

std::string explain_bytes(const config::Settings& s, const std::vector<Program>& stages, const BytesOptions& o) {
  if (compile::on_a_device(s))
    throw base::UserError("explain",
                          "--bytes: parallel.device = \"{}\" is not supported; use --set parallel.device=cpu",
                          name_of(compile::device_of(s)));
  const tensor::DType dtype = tensor::dtype_from(s.train.dtype);
  std::optional<train::ProfiledRun> run;
  train::Limits limits;
  if (o.steps > 0) {
    run = measured_run(s, stages, o.steps);
    limits = run->limits;
  } else {
    base::ThreadTeam team(static_cast<int>(s.parallel.threads));
    limits = train::measure_limits(team, dtype);
  }
  std::vector<KernelRow> rows = rows_of(stages, limits);
  if (run) add_measured(*run, rows);
  if (!o.csv.empty()) base::write_output(o.csv, floors_csv(rows, run.has_value()));
  const std::string how = run ? fmt::format("the mean of {} step{} after {} to warm up, random samples", o.steps,
                                            o.steps == 1 ? "" : "s", kStepsBefore)
                              : std::string("no step was measured");
  return fmt::format("{}, {}, {} thread{} a rank\nthe limit of a rank: {}\n", how, s.train.dtype, s.parallel.threads,
                     s.parallel.threads == 1 ? "" : "s", train::print(limits, dtype)) +
         operation_floors(rows, stages.size(), run.has_value()) +
         instruction_floors(rows, stages.size(), run.has_value()) + floors_table(rows, stages, run ? &*run : nullptr);
}

}  // namespace kintsugi::app
