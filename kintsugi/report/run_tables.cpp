#include "kintsugi/report/run_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "kintsugi/base/format.h"
#include "kintsugi/program/memory_table.h"
#include "kintsugi/report/html.h"

namespace kintsugi::report {
namespace {

std::vector<double> finite(const std::vector<double>& values) {
  std::vector<double> list;
  std::ranges::copy_if(values, std::back_inserter(list), [](double value) { return std::isfinite(value); });
  return list;
}

std::optional<double> median(const std::vector<double>& values) {
  std::vector<double> list = finite(values);
  if (list.empty()) return std::nullopt;
  const auto middle = list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2);
  std::nth_element(list.begin(), middle, list.end());
  return *middle;
}

std::string steps_text(const ReportRun& run) {
  const std::string done = base::group_digits(run.metrics.last_step);
  if (run.steps <= 0 || run.steps == run.metrics.last_step) return done;
  return fmt::format("{} of {}", done, base::group_digits(run.steps));
}

std::string tokens_text(const ReportRun& run) {
  const std::vector<double>& tokens = run.metrics.measure("tokens").values;
  return tokens.empty() ? "" : base::group_digits(std::llround(tokens.back()));
}

// Over the last hundredth of the steps.
std::string loss_text(const ReportRun& run) {
  const std::vector<double>& loss = run.metrics.measure("loss").values;
  if (loss.empty()) return "";
  const size_t count = std::max<size_t>(1, loss.size() / 100);
  const std::vector<double> last = finite({loss.end() - static_cast<std::ptrdiff_t>(count), loss.end()});
  if (last.empty()) return "not finite";
  const double mean = std::accumulate(last.begin(), last.end(), 0.0) / static_cast<double>(last.size());
  const std::string text = base::format_loss(mean);
  return count == 1 ? text
                    : fmt::format("{} (mean of {} steps)", text, base::group_digits(static_cast<int64_t>(count)));
}

std::string last_validation_text(const ReportRun& run) {
  const std::vector<double>& loss = run.metrics.measure("validation_loss").values;
  return loss.empty() ? "" : std::isfinite(loss.back()) ? base::format_loss(loss.back()) : "not finite";
}

std::string best_validation_text(const ReportRun& run) {
  const Measure& loss = run.metrics.measure("validation_loss");
  std::optional<size_t> best;
  for (size_t i = 0; i < loss.values.size(); ++i)
    if (std::isfinite(loss.values[i]) && (!best || loss.values[i] < loss.values[*best])) best = i;
  if (!best) return "";
  return fmt::format("{} at step {}", base::format_loss(loss.values[*best]),
                     base::group_digits(static_cast<int64_t>(loss.steps[*best])));
}

std::string norm_text(const ReportRun& run) {
  const std::vector<double> norms = finite(run.metrics.measure("gradient_norm").values);
  if (norms.empty()) return "";
  return fmt::format("{:.3g}, at most {:.3g}", *median(norms), *std::ranges::max_element(norms));
}

std::string rate_text(const ReportRun& run, std::string_view key, std::string_view unit) {
  const std::optional<double> rate = median(run.metrics.measure(key).values);
  return rate ? base::format_rate(*rate, unit) : "";
}

std::string arithmetic_text(const ReportRun& run) {
  std::string text = rate_text(run, "flops_per_second", "FLOP/s");
  if (const auto share = median(run.metrics.measure("peak_share").values); share && *share > 0)
    text += fmt::format(" ({:.0f}% of the peak)", 100 * *share);
  return text;
}

std::string time_text(const ReportRun& run) {
  const std::vector<double> seconds = finite(run.metrics.measure("seconds").values);
  return seconds.empty() ? "" : base::format_duration(std::accumulate(seconds.begin(), seconds.end(), 0.0));
}

std::string parameters_text(const ReportRun& run) {
  if (!run.planned) return "";
  int64_t parameters = 0;
  for (const program::Program& p : run.planned->stages) parameters += program::model_share(p).parameters;
  return base::group_digits(parameters);
}

std::string ranks_text(const ReportRun& run) {
  return run.planned ? to_string(run.planned->stages[0].mesh) : "";
}

std::string memory_text(const ReportRun& run) {
  double bytes = 0;
  if (run.planned)
    for (const program::Program& p : run.planned->stages) bytes = std::max(bytes, static_cast<double>(p.bytes()));
  else if (const std::vector<double>& measured = run.metrics.measure("memory_bytes").values; !measured.empty())
    bytes = std::max(0.0, measured.back());
  return bytes > 0 ? base::format_bytes(static_cast<uint64_t>(bytes)) : "";
}

struct Fact {
  std::string_view name;
  std::function<std::string(const ReportRun&)> text;
};

const std::vector<Fact>& facts() {
  static const std::vector<Fact> kFacts = {
      {"steps", steps_text},
      {"ended", [](const ReportRun& run) { return run.ended; }},
      {"tokens", tokens_text},
      {"loss at the end", loss_text},
      {"validation loss, best", best_validation_text},
      {"validation loss, last", last_validation_text},
      {"gradient norm, median", norm_text},
      {"speed, median", [](const ReportRun& run) { return rate_text(run, "tokens_per_second", run.unit + "/s"); }},
      {"arithmetic, median", arithmetic_text},
      {"time in steps", time_text},
      {"parameters", parameters_text},
      {"ranks", ranks_text},
      {"memory of a rank", memory_text}};
  return kFacts;
}

// Column headings with the names of several runs.
Table table_of(std::span<const ReportRun> runs, std::string_view first) {
  Table table = {.align = std::string(1 + runs.size(), 'l'), .head = {}};
  if (runs.size() == 1) return table;
  table.head.emplace_back(first);
  for (const ReportRun& run : runs) table.head.push_back(run.name);
  return table;
}

// A row per key for which `shown(i, differs)` is true; with the origin of its value for a single run. Marks keys that
// differ.
template <typename F>
std::string settings_table(std::span<const ReportRun> runs, F&& shown) {
  Table table = table_of(runs, "key");
  const bool with_origin = runs.size() == 1;
  if (with_origin) {
    table.align += 'l';
    table.head = {"key", "value", "origin"};
  }
  for (size_t i = 0; i < runs[0].settings.size(); ++i) {
    const Setting& first = runs[0].settings[i];
    const bool differs =
        std::ranges::any_of(runs, [&](const ReportRun& run) { return run.settings[i].value != first.value; });
    if (!shown(i, differs)) continue;
    std::vector<std::string>& row = table.rows.emplace_back();
    row.push_back(first.name);
    for (const ReportRun& run : runs) row.push_back(run.settings[i].value);
    if (with_origin) row.push_back(first.origin);
    table.marked.push_back(differs);
  }
  return table.rows.empty() ? "" : html_table(table);
}

}  // namespace

std::string html_summary(std::span<const ReportRun> runs) {
  Table table = table_of(runs, "");
  for (const Fact& fact : facts()) {
    std::vector<std::string> row = {std::string(fact.name)};
    bool any = false;
    for (const ReportRun& run : runs) {
      row.push_back(fact.text(run));
      any = any || !row.back().empty();
    }
    if (any) table.rows.push_back(std::move(row));
  }
  return html_table(table);
}

std::string html_ranking(std::span<const ReportRun> runs) {
  if (runs.size() < 2) return "";
  constexpr size_t kMostDiffering = 6;
  const auto last = [](const ReportRun& run, std::string_view key) {
    const std::vector<double>& values = run.metrics.measure(key).values;
    return values.empty() ? std::numeric_limits<double>::quiet_NaN() : values.back();
  };
  const bool validated =
      std::ranges::any_of(runs, [&](const ReportRun& run) { return std::isfinite(last(run, "validation_loss")); });
  const std::string_view key = validated ? "validation_loss" : "loss";
  std::vector<size_t> order(runs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    const double x = last(runs[a], key), y = last(runs[b], key);
    return std::isfinite(x) && (!std::isfinite(y) || x < y);
  });
  const ReportRun& best = runs[order[0]];
  Table table = {.align = "llrl", .head = {"", "run", validated ? "last validation loss" : "last loss", "differs in"}};
  for (size_t n = 0; n < order.size(); ++n) {
    const ReportRun& run = runs[order[n]];
    std::string differs;
    size_t count = 0;
    for (size_t i = 0; i < run.settings.size() && i < best.settings.size(); ++i) {
      if (run.settings[i].value == best.settings[i].value || run.settings[i].name == "train.folder") continue;
      if (++count <= kMostDiffering)
        differs += fmt::format("{}{} = {}", differs.empty() ? "" : ", ", run.settings[i].name, run.settings[i].value);
    }
    if (count > kMostDiffering)
      differs += fmt::format(", and {} more", base::counted(static_cast<int64_t>(count - kMostDiffering), "key"));
    const double loss = last(run, key);
    table.rows.push_back(
        {fmt::format("{}", n + 1), run.name, std::isfinite(loss) ? base::format_loss(loss) : "none", differs});
  }
  return html_heading("Ranking") + html_table(table);
}

std::string html_tasks(std::span<const ReportRun> runs) {
  constexpr std::string_view kTask = "task.", kError = "_error";
  std::set<std::string> keys;
  for (const ReportRun& run : runs)
    for (const auto& [key, measure] : run.metrics.measures)
      if (key.starts_with(kTask) && !key.ends_with(kError) && !measure.values.empty()) keys.insert(key);
  if (keys.empty()) return "";
  Table table = {.align = "ll" + std::string(runs.size(), 'r'), .head = {"task", "metric"}};
  for (const ReportRun& run : runs) table.head.push_back(runs.size() == 1 ? "at the last evaluation" : run.name);
  for (const std::string& key : keys) {
    const size_t dot = key.rfind('.');
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {key.substr(kTask.size(), dot - kTask.size()), key.substr(dot + 1)};
    for (const ReportRun& run : runs) {
      const std::vector<double>&value = run.metrics.measure(key).values,
            error = run.metrics.measure(key + std::string(kError)).values;
      std::string text = value.empty() ? "" : base::format_fixed(value.back(), 4);
      if (!text.empty() && !error.empty()) text += " \u00b1 " + base::format_fixed(error.back(), 4);
      row.push_back(std::move(text));
    }
  }
  return html_heading("Evaluation tasks") + html_table(table);
}

std::string html_settings(std::span<const ReportRun> runs) {
  std::string html;
  if (runs.size() > 1) {
    const std::string differ = settings_table(
        runs, [&](size_t i, bool differs) { return differs && runs[0].settings[i].name != "train.folder"; });
    html += differ.empty() ? html_paragraph("No setting differs.") : html_heading("What differs") + differ;
  }
  const std::string given = settings_table(runs, [&](size_t i, bool) {
    return std::ranges::any_of(runs, [&](const ReportRun& run) { return run.settings[i].given; });
  });
  if (!given.empty()) html += html_heading("What was set") + given;
  return html + html_details("Every key", settings_table(runs, [](size_t, bool) { return true; }));
}

}  // namespace kintsugi::report
