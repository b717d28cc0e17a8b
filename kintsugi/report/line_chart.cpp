#include "kintsugi/report/line_chart.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "kintsugi/report/html.h"
#include "kintsugi/report/style.h"
#include "kintsugi/report/ticks.h"

namespace kintsugi::report {
namespace {

constexpr double kAcross = 2000, kDown = 1000;  // the units in which curves are drawn, whatever the size on the page
constexpr double kNumTicks = 5;

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

// From values to places on an axis of `length`.
class Axis {
 public:
  Axis(Range range, bool log, double length) : range_(range), log_(log), length_(length) {}

  double place(double value) const {
    const double low = at(range_.low), high = at(range_.high);
    return high > low ? length_ * (at(value) - low) / (high - low) : length_ / 2;
  }
  std::vector<double> ticks() const {
    return log_ ? log_ticks(range_.low, range_.high, kNumTicks) : report::ticks(range_.low, range_.high, kNumTicks);
  }

 private:
  double at(double value) const { return log_ ? std::log(value) : value; }

  Range range_;
  bool log_;
  double length_;
};

// Whole units, each place relative to the one before it.
class Path {
 public:
  void move(double x, double y) { add('M', 'm', x, y); }
  void line(double x, double y) {
    if (std::llround(x) != x_ || std::llround(y) != y_) add('L', 'l', x, y);
  }
  // Of no length: a dot, with round ends.
  void dot(double x, double y) {
    move(x, y);
    text_ += "h0";
    last_ = 'h';
  }

  const std::string& text() const { return text_; }

 private:
  // A second pair of numbers behind one letter is a line; so each move has its own.
  void add(char first, char command, double x, double y) {
    const int64_t to_x = std::llround(x), to_y = std::llround(y);
    const int64_t by_x = to_x - x_, by_y = to_y - y_;
    if (text_.empty())
      text_ += first;
    else if (last_ != command || command == 'm')
      text_ += command;
    else if (by_x >= 0)
      text_ += ' ';
    fmt::format_to(std::back_inserter(text_), "{}{}{}", by_x, by_y >= 0 ? " " : "", by_y);
    last_ = command;
    x_ = to_x;
    y_ = to_y;
  }

  std::string text_;
  char last_ = 0;
  int64_t x_ = 0, y_ = 0;
};

class Drawing {
 public:
  explicit Drawing(const Chart& chart) : chart_(chart), x_(across(chart)), y_(down(chart)) {}

  std::string html() const {
    std::string html = fmt::format("<figure class=\"chart\">\n<h3>{}</h3>\n", escape_html(chart_.heading));
    if (!chart_.note.empty()) html += fmt::format("<p class=\"note\">{}</p>\n", escape_html(chart_.note));
    return html + legend() + plot() + "</figure>\n";
  }

 private:
  template <typename F>
  static void each_point(const Chart& chart, F&& f) {
    for (const Curve& curve : chart.curves)
      for (const std::vector<Point>* points : {&curve.points, &curve.faint})
        for (const Point& point : *points) f(point);
  }

  static Axis across(const Chart& chart) {
    Range range;
    each_point(chart, [&](const Point& point) { range.add(point.x); });
    return {range.empty() ? Range{0, 1} : range, false, kAcross};
  }

  static Axis down(const Chart& chart) {
    Range range;
    each_point(chart, [&](const Point& point) {
      if (std::isfinite(point.y)) range.add(point.y);
    });
    if (range.empty()) return {{0, 1}, false, kDown};
    if (!chart.from_zero && range.low > 0 && range.high > 100 * range.low) return {range, true, kDown};
    if (chart.from_zero && range.low >= 0) range.low = 0;
    if (range.low == range.high)
      range = {range.low - std::fabs(range.low) / 10, range.high + std::fabs(range.high) / 10};
    if (range.low == range.high) range.high = 1;
    const double margin = 0.04 * (range.high - range.low);
    return {{range.low == 0 ? 0 : range.low - margin, range.high + margin}, false, kDown};
  }

  double y(double value) const { return kDown - y_.place(value); }

  std::string legend() const {
    if (chart_.curves.size() == 1 && chart_.curves[0].name.empty()) return "";
    std::string html = "<ul class=\"legend\">\n";
    for (const Curve& curve : chart_.curves)
      html += fmt::format(
          "<li><svg viewBox=\"0 0 22 10\" class=\"{}\" aria-hidden=\"true\"><path d=\"M0 5h22\"{}/></svg>{}</li>\n",
          colour(curve), dash(curve), escape_html(curve.name));
    return html + "</ul>\n";
  }

  std::string plot() const {
    std::string html = fmt::format(
        "<div class=\"plot\">\n<svg viewBox=\"0 0 {:g} {:g}\" preserveAspectRatio=\"none\" role=\"img\" "
        "aria-label=\"{}\">\n",
        kAcross, kDown, escape_html(fmt::format("{} by {}", chart_.heading, chart_.x_name)));
    std::string grid, labels;
    for (const double tick : y_.ticks()) {
      grid += fmt::format("M0 {:.0f}h{:g}", y(tick), kAcross);
      labels += fmt::format("<span class=\"y\" style=\"top:{:.2f}%\">{}</span>\n", 100 * y(tick) / kDown,
                            escape_html(text(chart_.y_text, tick)));
    }
    for (const double tick : x_.ticks())
      labels += fmt::format("<span class=\"x\" style=\"left:{:.2f}%\">{}</span>\n", 100 * x_.place(tick) / kAcross,
                            escape_html(text(chart_.x_text, tick)));
    html += fmt::format("<path class=\"grid\" d=\"{}\"/>\n<path class=\"axis\" d=\"M0 {:g}h{:g}\"/>\n", grid, kDown,
                        kAcross);
    // What is faint lies behind all that is not.
    for (const Curve& curve : chart_.curves) html += line(curve, curve.faint, " faint");
    for (const Curve& curve : chart_.curves) html += line(curve, curve.points, "");
    return html + "</svg>\n" + labels + "</div>\n";
  }

  std::string line(const Curve& curve, const std::vector<Point>& points, std::string_view more) const {
    Path path, dots, lost;
    bool open = false;
    for (const Point& point : points) {
      const double x = x_.place(point.x);
      if (!std::isfinite(point.y)) {
        lost.move(x, 0);
        lost.line(x, kDown / 25);
        open = false;
        continue;
      }
      if (open)
        path.line(x, y(point.y));
      else
        path.move(x, y(point.y));
      if (curve.dots && more.empty()) dots.dot(x, y(point.y));
      open = true;
    }
    std::string html =
        svg_path(fmt::format("{}{}", colour(curve), more), path, more.empty() ? dash(curve) : "", curve.name);
    html += svg_path(fmt::format("dots {}", colour(curve)), dots, "", "");
    if (more.empty() || curve.points.empty())
      html += svg_path("lost", lost, "", curve.name.empty() ? "not finite" : curve.name + ": not finite");
    return html;
  }

  static std::string svg_path(const std::string& classes, const Path& path, std::string_view dash,
                              const std::string& title) {
    if (path.text().empty()) return "";
    const std::string all = dash.empty() ? classes : classes + " dashed";
    const std::string inner = title.empty() ? "" : fmt::format("<title>{}</title>", escape_html(title));
    return fmt::format("<path class=\"{}\" d=\"{}\">{}</path>\n", all, path.text(), inner);
  }

  static std::string colour(const Curve& curve) { return fmt::format("c{}", curve.colour % kColours); }
  // Where the colours begin again.
  static std::string_view dash(const Curve& curve) {
    return curve.colour / kColours % 2 == 1 ? " class=\"dashed\"" : "";
  }

  static std::string text(const std::function<std::string(double)>& form, double value) {
    return form ? form(value) : fmt::format("{:.6g}", value);
  }

  const Chart& chart_;
  Axis x_, y_;
};

}  // namespace

std::string html_chart(const Chart& chart) {
  return Drawing(chart).html();
}

}  // namespace kintsugi::report
