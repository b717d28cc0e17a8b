#include "kintsugi/report/run_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "kintsugi/base/format.h"
#include "kintsugi/report/html.h"
#include "kintsugi/report/measured_pictures.h"
#include "kintsugi/report/planned_run.h"
#include "kintsugi/report/profiled_step.h"
#include "kintsugi/report/run_charts.h"
#include "kintsugi/report/run_tables.h"
#include "kintsugi/report/run_texts.h"

namespace kintsugi::report {
namespace {

// The text common to all runs, or a list of all texts.
template <typename F>
std::string of_all(std::span<const ReportRun> runs, const F& text) {
  std::vector<std::string> texts;
  for (const ReportRun& run : runs)
    if (std::ranges::find(texts, text(run)) == texts.end() && !text(run).empty()) texts.push_back(text(run));
  constexpr size_t kMost = 3;
  const size_t more = texts.size() > kMost ? texts.size() - kMost : 0;
  texts.resize(texts.size() - more);
  return fmt::format("{}{}", fmt::join(texts, "; "), more > 0 ? fmt::format("; and {} more", more) : "");
}

// What was trained.
std::string title_of(std::span<const ReportRun> runs) {
  const std::string model = of_all(runs, [](const ReportRun& run) { return run.model; });
  const std::string name = runs.size() == 1 ? runs[0].name : fmt::format("{} runs", runs.size());
  return model.empty() ? name : fmt::format("{}: {}", name, model);
}

// Data, date and machine.
std::string subtitle_of(std::span<const ReportRun> runs) {
  std::string text;
  const auto add = [&](std::string_view what, const std::string& value) {
    if (!value.empty()) text += fmt::format("{}{}{}", text.empty() ? "" : " \u00b7 ", what, value);
  };
  add("data ", of_all(runs, [](const ReportRun& run) { return run.data; }));
  add("", of_all(runs, [](const ReportRun& run) { return run.date; }));
  add("on ", of_all(runs, [](const ReportRun& run) { return run.machine; }));
  return text.empty() ? "" : fmt::format("<p class=\"note\">{}</p>\n", escape_html(text));
}

std::string warnings_list(std::span<const ReportRun> runs) {
  std::string items;
  for (const ReportRun& run : runs)
    for (const std::string& warning : warnings_of(run))
      items +=
          fmt::format("<li>{}{}</li>\n", runs.size() == 1 ? "" : escape_html(run.name) + ": ", escape_html(warning));
  return items.empty() ? "" : "<ul class=\"note\">\n" + items + "</ul>\n";
}

std::string charts_of(std::span<const ReportRun> runs) {
  std::vector<MeasuredRun> measured;
  for (const ReportRun& run : runs) measured.push_back({run.name, run.unit, &run.metrics, run.loss_unit});
  return html_charts(measured);
}

// Runs with identical plans share a text.
std::string plans_of(std::span<const ReportRun> runs) {
  using Plan = std::pair<std::string, std::vector<std::string>>;  // and the names of its runs
  std::vector<Plan> plans;
  for (const ReportRun& run : runs) {
    std::string html = run.planned ? html_planned(*run.planned, !run.measured)
                                   : html_paragraph(fmt::format("The plan cannot be shown: {}.", run.not_planned));
    const auto same = std::ranges::find(plans, html, &Plan::first);
    if (same != plans.end())
      same->second.push_back(run.name);
    else
      plans.push_back({std::move(html), {run.name}});
  }
  if (plans.size() == 1) return html_section("Plan", plans[0].first);
  std::string all;
  for (const auto& [html, names] : plans)
    all += html_details(fmt::format("Plan of {}", fmt::join(names, ", ")), html, false);
  return html_section("Plans", all);
}

std::string measured_of(std::span<const ReportRun> runs) {
  std::vector<const profile::StepProfile*> steps;
  for (const ReportRun& run : runs)
    if (run.measured) steps.push_back(&run.measured->profile);
  const std::vector<std::string> operations = heaviest_operations(steps);
  std::string sections;
  for (const ReportRun& run : runs)
    if (run.measured && !run.measured->profile.of_ranks.empty())
      sections += html_section("Where the time of a step went" + (runs.size() == 1 ? "" : ": " + run.name),
                               html_measured(run, operations));
  return sections;
}

std::string predictions_of(std::span<const ReportRun> runs) {
  std::string sections;
  for (const ReportRun& run : runs)
    if (run.predictions)
      sections +=
          html_section("Predictions" + (runs.size() == 1 ? "" : ": " + run.name), html_predictions(*run.predictions));
  return sections;
}

}  // namespace

std::vector<std::string> warnings_of(const ReportRun& run) {
  std::vector<std::string> warnings;
  for (const std::string& left_out : run.metrics.left_out)
    warnings.push_back(fmt::format("metrics.jsonl: {}; left out", left_out));
  for (const auto& [key, measure] : run.metrics.measures)
    if (const int64_t lost = measure.num_not_finite(); lost > 0)
      warnings.push_back(fmt::format("{}: {} of {} values {} not finite; shown as {}", key, base::group_digits(lost),
                                     base::group_digits(static_cast<int64_t>(measure.values.size())),
                                     lost == 1 ? "is" : "are", lost == 1 ? "a gap" : "gaps"));
  if (!run.planned) warnings.push_back(fmt::format("the plan cannot be shown: {}", run.not_planned));
  if (!run.not_measured.empty())
    warnings.push_back(fmt::format("the time of a step cannot be shown: {}", run.not_measured));
  if (!run.not_predicted.empty())
    warnings.push_back(fmt::format("the predictions cannot be shown: {}", run.not_predicted));
  return warnings;
}

std::string run_page(std::span<const ReportRun> runs, std::string_view writer) {
  const std::string body = subtitle_of(runs) + warnings_list(runs) + html_ranking(runs) + html_summary(runs) +
                           html_tasks(runs) + html_section("Curves", charts_of(runs)) + predictions_of(runs) +
                           html_texts(runs) + html_section("Configuration", html_settings(runs)) + plans_of(runs) +
                           measured_of(runs) + fmt::format("<footer>Written by {}.</footer>\n", escape_html(writer));
  return html_page(title_of(runs), body);
}

}  // namespace kintsugi::report
