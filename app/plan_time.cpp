#include "app/plan_time.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "app/progress.h"
#include "app/table.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/report/trace.h"
#include "kintsugi/simulate/cluster.h"
#include "kintsugi/simulate/quantity.h"
#include "kintsugi/simulate/software.h"
#include "kintsugi/simulate/work.h"

namespace kintsugi::app {
namespace {

using simulate::Cluster;
using simulate::Measure;
using simulate::Simulated;
using simulate::StageTime;

std::string seconds(double s) {
  return s >= 1      ? fmt::format("{:.3f} s", s)
         : s >= 1e-3 ? fmt::format("{:.2f} ms", s * 1e3)
                     : fmt::format("{:.1f} us", s * 1e6);
}

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

// A column for each part that some stage spends at least a thousandth of the step in.
std::string print_time_of_stages(const Simulated& r) {
  std::vector<std::vector<std::string>> rows = {{"stage"}};
  for (size_t s = 0; s < r.stages.size(); ++s) rows.push_back({fmt::format("{}", s)});
  for (const TimePart& part : time_parts(r)) {
    if (std::ranges::none_of(r.stages, [&](const StageTime& t) { return part.of(t) >= 1e-3 * r.seconds; })) continue;
    rows[0].push_back(part.name);
    for (size_t s = 0; s < r.stages.size(); ++s)
      rows[s + 1].push_back(fmt::format("{:.1f}%", 100 * part.of(r.stages[s]) / r.seconds));
  }
  return "where the time of a step goes\n" + table(rows);
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

// The part of the step, on average over stages, that is not computing, largest first: what would help most.
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

}  // namespace

void plan_time(const config::Settings& s, const std::vector<program::Program>& stages, const TimeOptions& options) {
  const Cluster cluster = simulate::read_cluster(options.cluster);
  const simulate::Software& software = simulate::software_named(options.software);
  Progress progress("simulating");
  const Simulated r = simulate::simulate(stages, cluster, software, {.spans = !options.trace.empty()});
  progress.finish();
  const auto devices = static_cast<double>(stages[0].mesh.ranks());
  const double tokens = static_cast<double>(s.train.global_batch * s.train.sequence) / r.seconds;
  const simulate::Work work = simulate::work_of(stages);
  const auto peak = cluster.device.peak.find(tensor::dtype_from(s.train.dtype));
  const auto per_device = [&](double flops) { return flops / r.seconds / devices; };
  fmt::print("a step on {}: {} of {} {}\n", cluster.name, base::group_digits(stages[0].mesh.ranks()),
             base::group_digits(cluster.devices()), cluster.device.name);
  fmt::print("  step          {}\n", seconds(r.seconds));
  fmt::print("  tokens        {}, {} each\n", base::format_rate(tokens, "tokens/s"),
             base::format_rate(tokens / devices, "tokens/s"));
  if (peak != cluster.device.peak.end())
    fmt::print(
        "  utilization   {:.1f}% of {} ({}): model FLOPs, nothing that is computed twice; {:.1f}% with all pairs of "
        "attention, {:.1f}% with all that is computed\n",
        100 * per_device(work.model) / peak->second, to_string(peak->second, Measure::flops_per_second), s.train.dtype,
        100 * per_device(work.full_attention) / peak->second, 100 * per_device(work.hardware) / peak->second);
  fmt::print("{}", print_fit(cluster, stages));
  if (cluster.device.watts > 0)
    fmt::print("  energy        {:.3g} kWh a billion tokens, of the devices alone\n",
               cluster.device.watts * devices / tokens * 1e9 / 3.6e6);
  if (cluster.price > 0)
    fmt::print("  cost          {:.4g} a billion tokens\n", cluster.price * devices / tokens * 1e9 / 3600);
  fmt::print("{}{}", print_time_of_stages(r), print_why(r));
  if (!options.times.empty()) base::write_output(options.times, times_csv(r));
  if (!options.trace.empty()) base::write_output(options.trace, report::trace(stages, program::Step::train, r));
}

}  // namespace kintsugi::app
