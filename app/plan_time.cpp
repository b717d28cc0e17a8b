#include "app/plan_time.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "app/fold.h"
#include "app/progress.h"
#include "app/table.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/models/models.h"
#include "kintsugi/program/saved_states.h"
#include "kintsugi/program/stage_words.h"
#include "kintsugi/report/timeline.h"
#include "kintsugi/report/trace.h"
#include "kintsugi/simulate/cluster.h"
#include "kintsugi/simulate/failures.h"
#include "kintsugi/simulate/quantity.h"
#include "kintsugi/simulate/software.h"
#include "kintsugi/simulate/work.h"

namespace kintsugi::app {
namespace {

using simulate::Cluster;
using simulate::Measure;
using simulate::Simulated;
using simulate::StageTime;

// A part of the step: its name, and its seconds on a stage.
struct TimePart {
  std::string name;
  std::function<double(const StageTime&)> of;
};

std::vector<TimePart> time_parts(const Simulated& r) {
  std::vector<TimePart> parts;
  for (int c = 0; c < simulate::kClasses; ++c)
    parts.push_back({std::string(name_of(static_cast<simulate::Class>(c))),
                     [c](const StageTime& t) { return t.kernels[static_cast<size_t>(c)]; }});
  parts.push_back({"slowed by transfers", [](const StageTime& t) { return t.slowed; }});
  for (size_t a = 0; a < r.axes.size(); ++a)
    parts.push_back({"wait for " + r.axes[a], [a](const StageTime& t) { return t.exposed[a]; }});
  parts.push_back({"bubble", [](const StageTime& t) { return t.bubble; }});
  return parts;
}

// A column per part that takes at least a thousandth of the step on some stage.
std::string print_time_of_stages(const Simulated& r) {
  std::vector<std::vector<std::string>> rows = {{"stage"}};
  for (size_t s = 0; s < r.stages.size(); ++s) rows.push_back({fmt::format("{}", s)});
  for (const TimePart& part : time_parts(r)) {
    if (std::ranges::none_of(r.stages, [&](const StageTime& t) { return part.of(t) >= 1e-3 * r.seconds; })) continue;
    rows[0].push_back(part.name);
    for (size_t s = 0; s < r.stages.size(); ++s)
      rows[s + 1].push_back(fmt::format("{:.1f}%", 100 * part.of(r.stages[s]) / r.seconds));
  }
  return "where the time of a step goes\n" + table_within(kColumns, rows);
}

std::string times_csv(const Simulated& r) {
  const std::vector<TimePart> parts = time_parts(r);
  std::string text = "stage,step";
  for (const TimePart& part : parts) text += "," + part.name;
  for (const std::string& axis : r.axes) text += ",transfers over " + axis;
  text += "\n";
  for (size_t s = 0; s < r.stages.size(); ++s) {
    text += fmt::format("{},{:.9g}", s, r.seconds);
    for (const TimePart& part : parts) text += fmt::format(",{:.9g}", part.of(r.stages[s]));
    for (const double t : r.stages[s].transfers) text += fmt::format(",{:.9g}", t);
    text += "\n";
  }
  return text;
}

// The parts of the step other than compute, averaged over stages, largest first: what would help most.
std::string print_why(const Simulated& r) {
  std::vector<std::pair<double, std::string>> list;
  for (const TimePart& part : time_parts(r)) {
    double sum = 0;
    for (const StageTime& t : r.stages) sum += part.of(t);
    list.push_back({sum / static_cast<double>(r.stages.size()) / r.seconds, part.name});
  }
  std::ranges::sort(list, std::greater<>());
  return fmt::format("most of it is {} ({:.0f}%), then {} ({:.0f}%)\n", list[0].second, 100 * list[0].first,
                     list[1].second, 100 * list[1].first);
}

std::string print_fit(const Cluster& c, const std::vector<program::Program>& stages) {
  const auto most = std::ranges::max_element(stages, {}, [](const program::Program& p) { return p.bytes(); });
  const auto needed = static_cast<double>(most->bytes());
  std::string text =
      fmt::format("  memory        {} of {} on stage {}", base::format_bytes(static_cast<uint64_t>(needed)),
                  base::format_bytes(static_cast<uint64_t>(c.device.memory)), most->stage);
  return text + (needed > c.device.memory ? ": it does not fit\n" : "\n");
}

int64_t nodes_of(const Cluster& c, int64_t ranks) {
  const auto per_node = static_cast<int64_t>(c.devices_per_node);
  return (ranks + per_node - 1) / per_node;
}

// Seconds for all ranks to write a checkpoint together; 0: unknown.
double write_seconds(const Cluster& c, int64_t ranks, double bytes) {
  if (c.storage_bandwidth == 0) return 0;
  const double links = static_cast<double>(ranks) * c.network.link.attained();
  return bytes / (c.nodes > 1 ? std::min(c.storage_bandwidth, links) : c.storage_bandwidth);
}

// The cost of a checkpoint, and the goodput under failures.
std::string print_reliability(const Cluster& c, const std::vector<program::Program>& stages, double step,
                              const TimeOptions& options) {
  const int64_t ranks = stages[0].mesh.ranks(), nodes = nodes_of(c, ranks);
  const auto bytes = static_cast<double>(program::checkpoint_bytes(stages));
  const double write = write_seconds(c, ranks, bytes);
  std::string text = "  checkpoint    " + base::format_bytes(static_cast<uint64_t>(bytes));
  if (write > 0) text += fmt::format(", {} to write", base::format_time(write));
  text += "\n";
  const double of_node = options.node_failures ? *options.node_failures * 3600 : c.node_failure;
  if (of_node == 0) return text;
  if (write == 0)
    throw base::UserError(
        "plan", "{}: storage.bandwidth is missing, and with failures it decides how long a checkpoint takes", c.path);
  const simulate::Failures failures = {.between = of_node / static_cast<double>(nodes),
                                       .restart = options.restart ? *options.restart * 60 : c.restart,
                                       .write = write};
  const double interval = simulate::best_interval(failures), share = simulate::useful_share(failures, interval);
  text +=
      fmt::format("  failures      one every {} on {} node{}, {} to restart: ", base::format_duration(failures.between),
                  base::group_digits(nodes), nodes == 1 ? "" : "s", base::format_duration(failures.restart));
  if (share < 0.001) return text + "the run gets nowhere\n";
  return text + fmt::format(
                    "{:.1f}% of the time trains,\n                with a checkpoint every {} ({} steps): "
                    "[checkpoint] every_minutes = {:.3g}\n",
                    100 * share, base::format_duration(interval),
                    base::group_digits(std::max<int64_t>(1, std::llround(interval / step))), interval / 60);
}

std::string print_slow_rank(const std::vector<program::Program>& stages, const Cluster& cluster,
                            const simulate::Software& software, double step, const TimeOptions& options) {
  const int64_t rank = *options.slow_rank, ranks = stages[0].mesh.ranks();
  if (rank >= ranks) throw base::UserError("plan", "--slow-rank {}: the ranks are 0 to {}", rank, ranks - 1);
  const auto stage = std::ranges::find_if(stages, [&](const program::Program& p) {
    const std::vector<int> list = program::ranks_of(p);
    return std::ranges::count(list, static_cast<int>(rank)) > 0;
  });
  const simulate::Changes changes = {.slow_stage = stage->stage, .slowness = 1 + options.slower / 100};
  const double slow = simulate::simulate(stages, cluster, software, {.changes = changes}).seconds;
  return fmt::format("  a slow rank   rank {} (stage {}), kernels {:g}% slower: {} a step, {:.1f}% longer\n", rank,
                     stage->stage, options.slower, base::format_seconds(slow), 100 * (slow / step - 1));
}

}  // namespace

PlannedTime plan_time(const config::Settings& s, const std::vector<program::Program>& stages,
                      const TimeOptions& options) {
  const Cluster cluster = simulate::read_cluster(options.cluster);
  if (options.restart && !options.node_failures && cluster.node_failure == 0)
    throw base::UserError("plan", "--restart needs --node-failures, or reliability.node in {}", options.cluster);
  const simulate::Software& software = simulate::software_named(options.software);
  Progress progress("simulating");
  const Simulated r =
      simulate::simulate(stages, cluster, software, {.spans = !options.trace.empty() || !options.timeline.empty()});
  progress.finish();
  std::string text;
  const auto devices = static_cast<double>(stages[0].mesh.ranks());
  const double tokens = static_cast<double>(s.train.global_batch * s.train.sequence) / r.seconds;
  const simulate::Work work = simulate::work_of(stages);
  const auto peak = cluster.device.peak.find(tensor::dtype_from(s.train.dtype));
  const auto per_device = [&](double flops) { return flops / r.seconds / devices; };
  text += fmt::format("a step on {}: {} of {} {}\n", cluster.name, base::group_digits(stages[0].mesh.ranks()),
                      base::group_digits(cluster.devices()), cluster.device.name);
  text += fmt::format("  step          {}\n", base::format_seconds(r.seconds));
  const std::string unit = fmt::format("{}/s", models::unit_of(s.model));
  text += fmt::format("  {:<13} {}, {} each\n", models::unit_of(s.model), base::format_rate(tokens, unit),
                      base::format_rate(tokens / devices, unit));
  if (peak != cluster.device.peak.end())
    text += fmt::format(
        "  utilization   {:.1f}% of {} ({}), counting model FLOPs;\n"
        "                {:.1f}% with all pairs of attention, {:.1f}% with all computed FLOPs\n",
        100 * per_device(work.model) / peak->second, to_string(peak->second, Measure::flops_per_second), s.train.dtype,
        100 * per_device(work.full_attention) / peak->second, 100 * per_device(work.hardware) / peak->second);
  text += print_fit(cluster, stages);
  const bool of_tokens = models::reads_tokens(s.model);
  const double many = of_tokens ? 1e9 : 1e6;
  const char* const many_name = of_tokens ? "billion" : "million";
  if (cluster.device.watts > 0)
    text += fmt::format("  energy        {:.3g} kWh a {} {}, of the devices alone\n",
                        cluster.device.watts * devices / tokens * many / 3.6e6, many_name, models::unit_of(s.model));
  if (cluster.price > 0)
    text += fmt::format("  cost          {:.4g} a {} {}\n", cluster.price * devices / tokens * many / 3600, many_name,
                        models::unit_of(s.model));
  text += print_reliability(cluster, stages, r.seconds, options);
  if (options.slow_rank) text += print_slow_rank(stages, cluster, software, r.seconds, options);
  text += print_time_of_stages(r) + print_why(r);
  return {.text = std::move(text), .step = r};
}

void write_time(const PlannedTime& planned, const std::vector<program::Program>& stages, const TimeOptions& options) {
  const Simulated& r = planned.step;
  if (!options.times.empty()) base::write_output(options.times, times_csv(r));
  if (!options.timeline.empty())
    base::write_output(options.timeline, report::timeline(stages, program::Step::train, r));
  if (!options.trace.empty()) base::write_output(options.trace, report::trace(stages, program::Step::train, r));
}

}  // namespace kintsugi::app
