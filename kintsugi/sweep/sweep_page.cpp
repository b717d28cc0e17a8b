#include "kintsugi/sweep/sweep_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "kintsugi/base/format.h"
#include "kintsugi/report/html.h"
#include "kintsugi/report/line_chart.h"
#include "kintsugi/report/svg.h"

namespace kintsugi::sweep {
namespace {

// One axis of the parallel coordinates: a position from 0 (bottom) to 1 per run, and labels.
struct Axis {
  std::string name;
  std::vector<double> at;  // by trial; NaN: no value
  std::vector<std::pair<double, std::string>> labels;
};

double number(const std::string& text) {
  return std::strtod(text.c_str(), nullptr);
}

Axis axis_of(const Dimension& d, size_t index, const Sweep& sweep) {
  Axis axis = {d.key, {}, {}};
  if (!d.is_range()) {
    const double most = std::max(1.0, static_cast<double>(d.values.size()) - 1);
    for (size_t i = 0; i < d.values.size(); ++i)
      axis.labels.emplace_back(static_cast<double>(i) / most, base::one_line(d.values[i], 16));
    for (const Trial& trial : sweep.trials) {
      const auto found = std::ranges::find(d.values, trial.values[index].second);
      axis.at.push_back(static_cast<double>(found - d.values.begin()) / most);
    }
    return axis;
  }
  const auto scale = [&](double x) {
    return d.log ? std::log(x / d.from) / std::log(d.to / d.from) : (x - d.from) / (d.to - d.from);
  };
  for (const Trial& trial : sweep.trials) axis.at.push_back(scale(number(trial.values[index].second)));
  for (const double part : {0.0, 0.5, 1.0}) {
    const double x = d.log ? d.from * std::pow(d.to / d.from, part) : d.from + part * (d.to - d.from);
    axis.labels.emplace_back(part, fmt::format("{:.3g}", x));
  }
  return axis;
}

Axis measure_axis(const Sweep& sweep) {
  Axis axis = {sweep.measure.empty() ? "result" : sweep.measure, {}, {}};
  report::Range range;
  for (const Trial& trial : sweep.trials)
    if (!trial.results.empty()) range.add(trial.results.back());
  const double width = range.empty() || range.high == range.low ? 1 : range.high - range.low;
  for (const Trial& trial : sweep.trials)
    axis.at.push_back(trial.results.empty() ? NAN : (trial.results.back() - range.low) / width);
  if (!range.empty())
    for (const double part : {0.0, 0.5, 1.0})
      axis.labels.emplace_back(part, fmt::format("{:.4g}", range.low + part * width));
  return axis;
}

class CoordinatesPicture : public report::Svg {
 public:
  CoordinatesPicture(const std::vector<Axis>& axes, const std::vector<int64_t>& order)
      : Svg(kWidth, kHeight, kLeft, "Runs of the sweep: darker is better"), axes_(axes) {
    // Draw the best last, on top.
    for (size_t i = order.size(); i-- > 0;) add_run(static_cast<size_t>(order[i]), i, order.size());
    for (size_t a = 0; a < axes_.size(); ++a) add_axis(a);
  }

 private:
  static constexpr double kWidth = 1000, kHeight = 420, kLeft = 90, kRight = 910, kTop = 70, kBottom = 390;

  double x(size_t axis) const {
    return kLeft +
           (kRight - kLeft) * static_cast<double>(axis) / std::max<double>(1, static_cast<double>(axes_.size()) - 1);
  }
  static double y(double part) { return kBottom - (kBottom - kTop) * part; }

  void add_run(size_t trial, size_t place, size_t trials) {
    std::string path;
    for (size_t a = 0; a < axes_.size(); ++a) {
      if (std::isnan(axes_[a].at[trial])) break;
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(a), y(axes_[a].at[trial]));
    }
    const double worse = static_cast<double>(place) / std::max<double>(1, static_cast<double>(trials) - 1);
    const int shade = static_cast<int>(40 + 180 * std::sqrt(worse));
    add("<path d=\"{}\" fill=\"none\" stroke=\"rgb({},{},{})\" stroke-width=\"{}\"/>", path, shade / 3, shade,
        std::min(235, shade + 60), place == 0 ? 3 : 1.4);
  }
  void add_axis(size_t a) {
    add("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#444\"/>", x(a), kTop, kBottom);
    add("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\" font-size=\"13\" font-family=\"sans-serif\">{}</text>",
        x(a), kTop - 14, report::escape_html(axes_[a].name));
    for (const auto& [part, label] : axes_[a].labels)
      add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" font-size=\"12\" font-family=\"sans-serif\">{}</text>",
          x(a) - 6, y(part) + 4, report::escape_html(label));
  }

  const std::vector<Axis>& axes_;
};

// The best result so far by the total steps of all runs, rung by rung.
report::Curve best_over_steps(const Sweep& sweep) {
  report::Curve curve;
  curve.dots = true;
  double spent = 0;
  int64_t before = 0;
  for (size_t rung = 0; rung < sweep.rungs.size(); ++rung) {
    double best = NAN;
    for (const int64_t t : members(sweep, rung)) {
      const Trial& trial = sweep.trials[static_cast<size_t>(t)];
      if (trial.results.size() <= rung) continue;
      const double result = trial.results[rung];
      spent += static_cast<double>(sweep.rungs[rung] - before);
      if (std::isnan(best) || (sweep.maximize ? result > best : result < best)) best = result;
      curve.points.push_back({spent, best});
    }
    before = sweep.rungs[rung];
  }
  return curve;
}

}  // namespace

std::string trial_name(int64_t trial) {
  return fmt::format("run_{:03}", trial);
}

std::vector<std::string> result_head(const Spec& spec, const Sweep& sweep) {
  std::vector<std::string> head = {"place", "run"};
  for (const Dimension& d : spec.search) head.push_back(d.key);
  head.insert(head.end(), {"steps", sweep.measure.empty() ? "result" : sweep.measure, "failures", "note"});
  return head;
}

std::vector<std::vector<std::string>> result_rows(const Sweep& sweep) {
  std::vector<std::vector<std::string>> rows;
  for (const int64_t t : ranking(sweep)) {
    const Trial& trial = sweep.trials[static_cast<size_t>(t)];
    std::vector<std::string> row = {fmt::format("{}", rows.size() + 1), trial_name(t)};
    for (const auto& [key, value] : trial.values) row.push_back(value);
    const bool any = !trial.results.empty();
    row.push_back(fmt::format("{}", any ? sweep.rungs[trial.results.size() - 1] : 0));
    row.push_back(any ? fmt::format("{:.6g}", trial.results.back()) : "-");
    row.push_back(fmt::format("{}", trial.failures));
    row.push_back(trial.failed);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string result_csv(const Spec& spec, const Sweep& sweep) {
  std::string text;
  const auto add = [&](const std::vector<std::string>& row) {
    for (size_t i = 0; i < row.size(); ++i) {
      const bool quoted = row[i].find_first_of(",\"\n\r") != std::string::npos;
      std::string cell = row[i];
      for (size_t at = 0; quoted && (at = cell.find('"', at)) != std::string::npos; at += 2) cell.insert(at, 1, '"');
      text += (i ? "," : "") + (quoted ? '"' + cell + '"' : cell);
    }
    text += '\n';
  };
  add(result_head(spec, sweep));
  for (const auto& row : result_rows(sweep)) add(row);
  return text;
}

std::string parallel_coordinates(const Spec& spec, const Sweep& sweep) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < spec.search.size(); ++d) axes.push_back(axis_of(spec.search[d], d, sweep));
  axes.push_back(measure_axis(sweep));
  return CoordinatesPicture(axes, ranking(sweep)).take();
}

std::string sweep_page(const Spec& spec, const Sweep& sweep, std::span<const report::MetricsTable> metrics) {
  report::Table table;
  table.head = result_head(spec, sweep);
  table.align = "rl" + std::string(spec.search.size(), 'r') + "rrrl";
  table.rows = result_rows(sweep);
  table.marked.assign(table.rows.size(), false);
  if (!table.rows.empty()) table.marked[0] = true;
  table.wide = true;
  std::string body = report::html_section("Runs, best first", report::html_table(table));
  body += report::html_section("Keys and result", report::html_picture(parallel_coordinates(spec, sweep), ""));
  report::Chart budget;
  budget.heading = "Best result over the steps of all runs";
  budget.x_name = "steps of all runs";
  budget.curves = {best_over_steps(sweep)};
  report::Chart losses;
  losses.heading = sweep.measure.empty() ? "loss" : sweep.measure;
  const std::vector<int64_t> order = ranking(sweep);
  constexpr size_t kMostCurves = 24;  // more are indistinguishable
  for (size_t i = 0; i < std::min(kMostCurves, order.size()); ++i) {
    const report::Measure& m = metrics[static_cast<size_t>(order[i])].measure(losses.heading);
    report::Curve curve;
    curve.name = trial_name(order[i]);
    curve.colour = static_cast<int>(i);
    for (size_t p = 0; p < m.steps.size(); ++p) curve.points.push_back({m.steps[p], m.values[p]});
    if (!curve.points.empty()) losses.curves.push_back(std::move(curve));
  }
  if (order.size() > kMostCurves) losses.note = fmt::format("The best {} of {} runs.", kMostCurves, order.size());
  std::string charts;
  if (!budget.curves[0].points.empty()) charts += report::html_chart(budget);
  if (!losses.curves.empty()) charts += report::html_chart(losses);
  body += report::html_section("Curves", "<div class=\"charts\">" + charts + "</div>");
  return report::html_page("Sweep " + spec.folder, body);
}

}  // namespace kintsugi::sweep
