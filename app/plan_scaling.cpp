#include "app/plan_scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "app/fold.h"
#include "app/program_of.h"
#include "app/progress.h"
#include "app/standard_streams.h"
#include "app/table.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/models/models.h"
#include "kintsugi/report/scaling_picture.h"
#include "kintsugi/simulate/simulate.h"

namespace kintsugi::app {
namespace {

using config::Settings;
using simulate::Cluster;

constexpr size_t kMostNumbers = 64;

struct Step {
  double seconds = 0;
  int64_t samples = 0;
};

struct Row {
  int64_t devices = 0, data = 0;
  std::optional<Step> strong, weak;  // nothing: the batch does not divide
};

std::optional<Step> step_of(const std::optional<Settings>& s, const Cluster& cluster,
                            const simulate::Software& software, Progress& progress) {
  if (!s) return std::nullopt;
  const std::vector<program::Program> programs = compile::compile(
      {.settings = *s, .kernels = *kernels_of(*s, software), .dump = [&](std::string_view, const program::Program& p) {
         progress.tell(fmt::format("{} devices, compiling stage {} of {}", base::group_digits(s->parallel.ranks),
                                   p.stage + 1, s->parallel.pipe));
       }});
  progress.tell(fmt::format("{} devices, simulating", base::group_digits(s->parallel.ranks)));
  return Step{simulate::simulate(programs, cluster, software).seconds, s->train.global_batch};
}

double tokens_a_second(const Settings& s, const Step& step) {
  return static_cast<double>(step.samples * s.train.sequence) / step.seconds;
}

// Tokens per device, for the smallest number of devices.
std::string of_ideal(const Settings& s, const std::vector<Row>& rows, const Row& row, std::optional<Step> Row::*which) {
  const auto each = [&](const Row& r) { return tokens_a_second(s, *(r.*which)) / static_cast<double>(r.devices); };
  const auto first = std::ranges::find_if(rows, [&](const Row& r) { return (r.*which).has_value(); });
  return fmt::format("{:.1f}%", 100 * each(row) / each(*first));
}

// One of both.
std::string print_rows(const Settings& s, const std::vector<Row>& rows, std::optional<Step> Row::*which) {
  std::vector<std::vector<std::string>> cells = {
      {"devices", "data", "samples", "step", std::string(models::unit_of(s.model)), "each", "of ideal"}};
  const std::string unit = fmt::format("{}/s", models::unit_of(s.model));
  for (const Row& row : rows) {
    std::vector<std::string>& line =
        cells.emplace_back(std::vector<std::string>{base::group_digits(row.devices), base::group_digits(row.data)});
    const std::optional<Step>& step = row.*which;
    if (!step) {
      line.insert(line.end(), {"-", "the batch does not divide"});
      continue;
    }
    const double tokens = tokens_a_second(s, *step);
    line.insert(
        line.end(),
        {base::group_digits(step->samples), base::format_seconds(step->seconds), base::format_rate(tokens, unit),
         base::format_rate(tokens / static_cast<double>(row.devices), unit), of_ideal(s, rows, row, which)});
  }
  return table_within(kColumns, cells);
}

std::string scaling_csv(const std::vector<Row>& rows) {
  std::string text = "devices,data,strong_samples,strong_seconds,weak_samples,weak_seconds\n";
  for (const Row& row : rows) {
    text += fmt::format("{},{}", row.devices, row.data);
    for (const std::optional<Step>& step : {row.strong, row.weak})
      text += step ? fmt::format(",{},{:.9g}", step->samples, step->seconds) : ",,";
    text += "\n";
  }
  return text;
}

std::string picture(const Settings& s, const std::vector<Row>& rows, const std::string& title) {
  std::vector<report::ScalingCurve> curves = {{"strong scaling", {}}, {"weak scaling", {}}};
  for (const Row& row : rows) {
    const auto devices = static_cast<double>(row.devices);
    if (row.strong) curves[0].points.push_back({devices, tokens_a_second(s, *row.strong)});
    if (row.weak) curves[1].points.push_back({devices, tokens_a_second(s, *row.weak)});
  }
  return report::scaling_picture(curves, title);
}

void check(const Settings& s, const ScalingOptions& options, const Cluster& c) {
  const int64_t replica = devices_of_replica(s);
  for (const int64_t n : options.devices) {
    if (n > c.devices())
      throw base::UserError("plan", "--devices {}: {} has {}: {} nodes of {}", n, c.path, c.devices(), c.nodes,
                            c.devices_per_node);
    if (n % replica != 0)
      throw base::UserError("plan", "--devices {}: a replica of the run's layout takes {} devices; write a multiple", n,
                            replica);
  }
}

}  // namespace

int64_t devices_of_replica(const Settings& s) {
  return s.parallel.ranks / s.parallel.data;
}

std::optional<Settings> with_replicas(Settings s, int64_t data, int64_t samples) {
  if (samples % data != 0) return std::nullopt;
  config::Parallel& p = s.parallel;
  p.ranks = devices_of_replica(s) * data;
  p.data = data;
  if (p.shard_group > data) p.shard_group = 0;
  if (p.ranks > 1) p.threads = 1;  // of a device; on this machine workspaces are for each thread
  s.train.global_batch = samples;
  s.train.micro_batch = std::min(s.train.micro_batch, samples / data);
  if (samples / data % s.train.micro_batch != 0) return std::nullopt;
  return s;
}

std::vector<int64_t> numbers_of_devices(const std::string& text, std::string_view verb, std::string_view option) {
  std::vector<int64_t> numbers;
  const char *at = text.data(), *const end = at + text.size();
  for (;;) {
    int64_t number = 0;
    const auto [after, error] = std::from_chars(at, end, number);
    const bool whole = error == std::errc{} && (after == end || *after == ',');
    if (!whole || number < 1 || number > 1'000'000 || numbers.size() == kMostNumbers)
      throw base::UserError(verb, "{} {}: write numbers of devices from 1 to 1,000,000, e.g. 8 or 8,64,512", option,
                            base::in_quotes(text, 60));
    numbers.push_back(number);
    if (after == end) break;
    at = after + 1;
  }
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

void plan_scaling(const Settings& s, const ScalingOptions& options) {
  const Cluster cluster = simulate::read_cluster(options.cluster);
  const simulate::Software& software = simulate::software_named(options.software);
  check(s, options, cluster);
  std::vector<Row> rows;
  Progress progress("scaling");
  for (const int64_t n : options.devices) {
    const int64_t data = n / devices_of_replica(s), samples = s.train.global_batch / s.parallel.data * data;
    const auto strong = with_replicas(s, data, s.train.global_batch), weak = with_replicas(s, data, samples);
    rows.push_back({n, data, step_of(strong, cluster, software, progress), step_of(weak, cluster, software, progress)});
  }
  progress.finish();
  write_out("scaling on {}: a replica of the model takes {} {}\n", cluster.name,
            base::group_digits(devices_of_replica(s)), cluster.device.name);
  write_out("strong scaling: the batch of the run, {}\n{}", base::counted(s.train.global_batch, "sample"),
            print_rows(s, rows, &Row::strong));
  write_out("weak scaling: as many samples a replica as in the run, {}\n{}",
            base::group_digits(s.train.global_batch / s.parallel.data), print_rows(s, rows, &Row::weak));
  if (!options.times.empty()) base::write_output(options.times, scaling_csv(rows));
  if (!options.svg.empty())
    base::write_output(options.svg, picture(s, rows, fmt::format("Scaling on {}, as planned", cluster.name)));
}

}  // namespace kintsugi::app
