#include "kintsugi/report/run_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "kintsugi/base/format.h"
#include "kintsugi/report/line_chart.h"

namespace kintsugi::report {
namespace {

constexpr size_t kBuckets = 600;     // about one pixel column each
constexpr size_t kFewPoints = 12;    // maximum number of points to mark with dots
constexpr size_t kMostNoisy = 40;    // maximum number of points to show without smoothing
constexpr double kMeanShare = 0.02;  // window of the moving mean as a fraction of the points,
constexpr size_t kLeastMean = 10;    // but at least this many
constexpr size_t kMostOthers = 12;   // maximum number of charts of unknown measures

// "250", "2.5 k", "40 k"
std::string count_text(double value) {
  constexpr std::array<std::string_view, 5> kUnits = {"", " k", " M", " B", " T"};
  size_t unit = 0;
  for (; unit + 1 < kUnits.size() && value >= 1000; ++unit) value /= 1000;
  return fmt::format("{:.4g}{}", value, kUnits[unit]);
}

std::string step_text(double value) {
  return value == std::floor(value) ? base::group_digits(static_cast<int64_t>(value)) : fmt::format("{:g}", value);
}

// A chart per known measure.
struct KnownChart {
  std::string_view key, heading;
  bool noisy = false;  // shown with its moving mean
  bool from_zero = false;
  std::string (*y_text)(double) = nullptr;
};
constexpr std::array<KnownChart, 4> kCharts = {{{"loss", "Loss", true},
                                                {"learning_rate", "Learning rate", false, true},
                                                {"gradient_norm", "Gradient norm", true},
                                                {"tokens_per_second", "Speed", true, true, count_text}}};
// Shown in other charts, or redundant.
constexpr std::array<std::string_view, 5> kNoCharts = {"tokens", "flops_per_second", "peak_share", "memory_bytes",
                                                       "seconds"};
constexpr std::string_view kLoss = "loss", kSpeed = "tokens_per_second";
constexpr std::string_view kValidation = "validation_loss";  // and "validation_loss.DOMAIN"
constexpr std::string_view kTask = "task.";                  // "task.TASK.METRIC", and "task.TASK.METRIC_error"
// Loads of experts relative to the mean, and the names of their curves.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kExpertLoads = {
    {{"busiest_expert", "busiest of a layer"},
     {kMostLoaded, "most loaded over all layers"},
     {kLeastLoaded, "least loaded over all layers"}}};
constexpr std::string_view kDropped = "dropped_tokens";
// Measures that some runs have: a chart each, below the others.
struct NamedMeasure {
  std::string_view key, heading, unit;
};
constexpr auto kNamed = std::to_array<NamedMeasure>(
    {{"accuracy", "Pairs whose chosen answer has the higher reward", "share"},
     {"answer_tokens", "Length of sampled answers", "tokens"},
     {"bits_per_byte", "Loss per byte of text", "bits"},
     {"drain_seconds", "Time to copy a checkpoint to the run's folder", "s"},
     {"loss_scale", "Loss scale", ""},
     {"planned_seconds", "Planned time of a step", "s"},
     {"reward", "Reward", ""},
     {"reward_margin", "Reward of chosen minus rejected answers", ""},
     {"reward_spread", "Groups of answers whose rewards differ", "share"},
     {"rmse", "Validation: root mean square error", ""},
     {"rollout_gap", "Difference of log-probabilities, sampling to training", "nats"},
     {"rollout_seconds", "Time to sample answers", "s"},
     {"skipped_steps", "Skipped updates", "steps"},
     {"stage_seconds", "Time that the run waits for a checkpoint", "s"},
     {"top1", "Validation: top-1 accuracy", "share"},
     {"top5", "Validation: top-5 accuracy", "share"},
     {"validation_accuracy", "Validation: pairs whose chosen answer has the higher reward", "share"},
     {"validation_bits_per_byte", "Validation loss per byte of text", "bits"},
     {"validation_reward", "Validation: reward", ""},
     {"validation_reward_margin", "Validation: reward of chosen minus rejected answers", ""}});
constexpr std::string_view kFurther = "loss.";  // "loss.NAME"

size_t half_of_mean(size_t points) {
  return std::max(kLeastMean, static_cast<size_t>(kMeanShare * static_cast<double>(points))) / 2;
}

Curve curve_of(const std::string& name, size_t colour, std::span<const double> x, std::span<const double> y,
               bool noisy) {
  Curve curve = {
      .name = name, .colour = static_cast<int>(colour), .points = thin(x, y, kBuckets), .dots = y.size() <= kFewPoints};
  if (noisy && y.size() > kMostNoisy) {
    curve.faint = std::move(curve.points);
    std::vector<Point> mean = thin(x, moving_mean(y, half_of_mean(y.size())), kBuckets);
    std::erase_if(mean, [](const Point& point) { return std::isnan(point.y); });  // the faint curve marks gaps
    curve.points = std::move(mean);
  }
  return curve;
}

bool any_mean(const Chart& chart) {
  return std::ranges::any_of(chart.curves, [](const Curve& curve) { return !curve.faint.empty(); });
}

void add(Chart chart, std::string& html) {
  if (std::ranges::all_of(chart.curves, [](const Curve& c) { return c.points.empty() && c.faint.empty(); })) return;
  if (any_mean(chart)) {
    if (!chart.note.empty()) chart.note += "; ";
    chart.note += fmt::format("thin: each step; thick: the mean over {:g}% of the steps, at least {}", 100 * kMeanShare,
                              kLeastMean);
  }
  html += html_chart(chart);
}

std::string name_in_legend(std::span<const MeasuredRun> runs, size_t run) {
  return runs.size() == 1 ? "" : runs[run].name;
}

// Of a measure that has no chart of a fixed place.
NamedMeasure named_measure(std::string_view key) {
  const auto named = std::ranges::find(kNamed, key, &NamedMeasure::key);
  return named == kNamed.end() ? NamedMeasure{key, key, ""} : *named;
}

std::string heading_of(std::string_view key) {
  if (key.starts_with(kFurther)) return fmt::format("Loss: {}", key.substr(kFurther.size()));
  return std::string(named_measure(key).heading);
}

// All charts by step share their range.
Chart empty_chart(std::span<const MeasuredRun> runs, std::string_view heading) {
  Chart chart = {.heading = std::string(heading), .curves = {}, .x_text = step_text};
  for (const MeasuredRun& run : runs) {
    chart.x_range.add(static_cast<double>(run.metrics->first_step));
    chart.x_range.add(static_cast<double>(run.metrics->last_step));
  }
  return chart;
}

Chart chart_by_step(std::span<const MeasuredRun> runs, const KnownChart& known) {
  Chart chart = empty_chart(runs, known.heading);
  chart.from_zero = known.from_zero;
  chart.y_text = known.y_text;
  chart.y_name = known.key == kLoss    ? runs[0].loss_unit
                 : known.key == kSpeed ? runs[0].unit + "/s"
                                       : std::string(named_measure(known.key).unit);
  for (size_t i = 0; i < runs.size(); ++i) {
    const Measure& measure = runs[i].metrics->measure(known.key);
    chart.curves.push_back(curve_of(name_in_legend(runs, i), i, measure.steps, measure.values, known.noisy));
  }
  std::erase_if(chart.curves, [](const Curve& c) { return c.points.empty() && c.faint.empty(); });
  return chart;
}

// Omits the initial drop, so that later learning is visible.
Chart second_half(std::span<const MeasuredRun> runs) {
  Chart chart = {.heading = "Loss, second half", .y_name = runs[0].loss_unit, .curves = {}, .x_text = step_text};
  double last = 0;
  for (const MeasuredRun& run : runs) last = std::max(last, static_cast<double>(run.metrics->last_step));
  for (size_t i = 0; i < runs.size(); ++i) {
    const Measure& loss = runs[i].metrics->measure("loss");
    const auto begin = std::ranges::lower_bound(loss.steps, last / 2) - loss.steps.begin();
    const auto of_half = [&](const std::vector<double>& all) {
      return std::span(all).subspan(static_cast<size_t>(begin));
    };
    if (of_half(loss.steps).size() > kMostNoisy)
      chart.curves.push_back(curve_of(name_in_legend(runs, i), i, of_half(loss.steps), of_half(loss.values), true));
  }
  return chart;
}

// The loss over all data, in the colour of its run, and of each domain evaluated separately.
Chart validation_chart(std::span<const MeasuredRun> runs) {
  Chart chart = empty_chart(runs, "Validation loss");
  chart.y_name = runs[0].loss_unit;
  std::set<std::string> keys;
  for (const MeasuredRun& run : runs)
    for (const auto& [key, measure] : run.metrics->measures)
      if (key.starts_with(kValidation)) keys.insert(key);
  size_t of_domain = runs.size();
  for (size_t i = 0; i < runs.size(); ++i)
    for (const std::string& key : keys) {
      const Measure& measure = runs[i].metrics->measure(key);
      if (measure.values.empty()) continue;
      std::string name = name_in_legend(runs, i);
      if (key != kValidation) {
        if (!name.empty()) name += ", ";
        name += key.substr(std::min(kValidation.size() + 1, key.size()));
      } else if (name.empty() && keys.size() > 1) {
        name = "all";
      }
      const size_t colour = key == kValidation ? i : of_domain++;
      Curve curve = curve_of(name, colour, measure.steps, measure.values, false);
      curve.dots = measure.values.size() <= kMostNoisy;
      if (!curve.points.empty()) chart.curves.push_back(std::move(curve));
    }
  return chart;
}

// The metric of a task, "acc" of "task.piqa.acc"; "" for other keys and for standard errors.
std::string_view metric_of_task(std::string_view key) {
  if (!key.starts_with(kTask) || key.ends_with("_error")) return "";
  return key.substr(key.rfind('.') + 1);
}

// A metric of all tasks and runs by step: a curve for each task of each run.
Chart task_chart(std::span<const MeasuredRun> runs, std::string_view metric) {
  Chart chart = empty_chart(runs, fmt::format("Evaluation tasks: {}", metric));
  size_t colour = 0;
  for (size_t i = 0; i < runs.size(); ++i)
    for (const auto& [key, measure] : runs[i].metrics->measures) {
      if (metric_of_task(key) != metric || measure.values.empty()) continue;
      const std::string run = name_in_legend(runs, i), task = key.substr(kTask.size(), key.rfind('.') - kTask.size());
      chart.curves.push_back(
          curve_of(run.empty() ? task : run + ", " + task, colour++, measure.steps, measure.values, false));
      chart.curves.back().dots = measure.values.size() <= kMostNoisy;
    }
  return chart;
}

std::string in_run(std::span<const MeasuredRun> runs, size_t run, std::string_view what) {
  const std::string name = name_in_legend(runs, run);
  return name.empty() ? std::string(what) : fmt::format("{}, {}", name, what);
}

Chart expert_load_chart(std::span<const MeasuredRun> runs) {
  Chart chart = empty_chart(runs, "Load of experts");
  chart.y_name = "x mean";
  chart.from_zero = true;
  size_t colour = 0;
  for (size_t i = 0; i < runs.size(); ++i)
    for (const auto& [key, what] : kExpertLoads) {
      const Measure& measure = runs[i].metrics->measure(key);
      if (!measure.values.empty())
        chart.curves.push_back(curve_of(in_run(runs, i, what), colour++, measure.steps, measure.values, true));
    }
  return chart;
}

Chart expert_tokens_chart(std::span<const MeasuredRun> runs) {
  Chart chart = {.heading = "Tokens per expert, last step",
                 .note = "summed over layers",
                 .x_name = "expert",
                 .curves = {},
                 .from_zero = true,
                 .x_text = step_text,
                 .y_text = count_text};
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::vector<double>& tokens = runs[i].metrics->expert_tokens;
    std::vector<double> experts;
    for (size_t e = 0; e < tokens.size(); ++e) experts.push_back(static_cast<double>(e));
    if (!tokens.empty()) chart.curves.push_back(curve_of(name_in_legend(runs, i), i, experts, tokens, false));
  }
  return chart;
}

// The cumulative tokens at each step of a run that has a loss.
std::vector<double> tokens_at(const MetricsTable& metrics, const Measure& loss) {
  const Measure& tokens = metrics.measure("tokens");
  return tokens.steps == loss.steps && std::ranges::is_sorted(tokens.values) ? tokens.values : std::vector<double>();
}

double tokens_per_step(const MetricsTable& metrics) {
  const Measure& tokens = metrics.measure("tokens");
  return tokens.values.empty() ? 0 : tokens.values.back() / std::max(1.0, tokens.steps.back());
}

Chart chart_by_tokens(std::span<const MeasuredRun> runs) {
  Chart chart = {
      .heading = "Loss by tokens", .x_name = "tokens", .y_name = runs[0].loss_unit, .curves = {}, .x_text = count_text};
  for (size_t i = 0; i < runs.size(); ++i) {
    const Measure& loss = runs[i].metrics->measure("loss");
    const std::vector<double> tokens = tokens_at(*runs[i].metrics, loss);
    if (!tokens.empty()) chart.curves.push_back(curve_of(name_in_legend(runs, i), i, tokens, loss.values, true));
  }
  return chart;
}

bool steps_differ(std::span<const MeasuredRun> runs) {
  return std::ranges::any_of(runs, [&](const MeasuredRun& run) {
    const double first = tokens_per_step(*runs[0].metrics), other = tokens_per_step(*run.metrics);
    return first > 0 && other > 0 && std::fabs(first - other) > 1e-3 * first;
  });
}

bool has_chart(std::string_view key) {
  return key.starts_with(kValidation) || key.starts_with(kTask) || key == kDropped ||
         std::ranges::find(kExpertLoads, key, &decltype(kExpertLoads)::value_type::first) != kExpertLoads.end() ||
         std::ranges::find(kNoCharts, key) != kNoCharts.end() ||
         std::ranges::any_of(kCharts, [&](const KnownChart& known) { return known.key == key; });
}

}  // namespace

std::string html_charts(std::span<const MeasuredRun> runs) {
  std::string html;
  for (const KnownChart& known : kCharts) {
    add(chart_by_step(runs, known), html);
    if (known.key != "loss") continue;
    add(second_half(runs), html);
    if (steps_differ(runs)) add(chart_by_tokens(runs), html);
    add(validation_chart(runs), html);
    std::set<std::string> metrics;
    for (const MeasuredRun& run : runs)
      for (const auto& [key, measure] : run.metrics->measures) metrics.emplace(metric_of_task(key));
    for (const std::string& metric : metrics)
      if (!metric.empty()) add(task_chart(runs, metric), html);
  }
  add(expert_load_chart(runs), html);
  add(expert_tokens_chart(runs), html);
  add(chart_by_step(runs, {.key = kDropped, .heading = "Tokens without a slot of their expert", .from_zero = true}),
      html);
  std::set<std::string> others;
  for (const MeasuredRun& run : runs)
    for (const auto& [key, measure] : run.metrics->measures)
      if (!has_chart(key) && others.size() < kMostOthers) others.insert(key);
  for (const std::string& key : others)
    add(chart_by_step(runs, {.key = key, .heading = heading_of(key), .noisy = true}), html);
  return "<div class=\"charts\">\n" + html + "</div>\n";
}

}  // namespace kintsugi::report
