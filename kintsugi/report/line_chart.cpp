#include "kintsugi/report/line_chart.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kintsugi/report/html.h"
#include "kintsugi/report/style.h"
#include "kintsugi/report/ticks.h"

namespace kintsugi::report {
namespace {

constexpr double kAcross = 2000, kDown = 1000;  // the units of curves, independent of their size on the page
constexpr double kTicksAcross = 5, kTicksDown = 6;
constexpr size_t kDashes = 4;     // dash patterns of curves: none, and d1, d2, d3
constexpr double kFarApart = 20;  // the ratio at which the axis becomes logarithmic

// Maps values to positions on an axis of `length`.
class Axis {
 public:
  Axis(Range range, double length, double ticks, bool log = false)
      : range_(range), length_(length), ticks_(ticks), log_(log) {}

  double place(double value) const {
    const double low = at(range_.low), high = at(range_.high);
    return high > low ? length_ * (at(value) - low) / (high - low) : length_ / 2;
  }
  std::vector<double> ticks() const {
    return log_ ? log_ticks(range_.low, range_.high, ticks_) : report::ticks(range_.low, range_.high, ticks_);
  }

 private:
  double at(double value) const { return log_ ? std::log(value) : value; }

  Range range_;
  double length_, ticks_;
  bool log_;
};

// Integer units, each position relative to the previous one.
class Path {
 public:
  void move(double x, double y) { add('M', 'm', x, y); }
  void line(double x, double y) {
    if (std::llround(x) != x_ || std::llround(y) != y_) add('L', 'l', x, y);
  }
  // A zero-length line with round caps: a dot.
  void dot(double x, double y) {
    move(x, y);
    text_ += "h0";
    last_ = 'h';
  }

  const std::string& text() const { return text_; }

 private:
  // A second pair of numbers after one letter would be a line; so each move has its own letter.
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

// Clamps to the range of safe addition and subtraction.
double within(double value) {
  return std::clamp(value, -1e300, 1e300);
}

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
    Range range = chart.x_range;
    each_point(chart, [&](const Point& point) { range.add(point.x); });
    return {range.empty() ? Range{0, 1} : range, kAcross, kTicksAcross};
  }

  static Axis down(const Chart& chart) {
    Range range;
    each_point(chart, [&](const Point& point) {
      if (std::isfinite(point.y)) range.add(within(point.y));
    });
    if (range.empty()) return {{0, 1}, kDown, kTicksDown};
    if (!chart.from_zero && range.low > 0 && range.high > kFarApart * range.low)
      return {range, kDown, kTicksDown, true};
    if (chart.from_zero && range.low >= 0) range.low = 0;
    if (range.low == range.high)
      range = {range.low - std::fabs(range.low) / 10, range.high + std::fabs(range.high) / 10};
    if (range.low == range.high) range.high = 1;
    const double margin = 0.04 * (range.high - range.low);
    return {{range.low == 0 ? 0 : range.low - margin, range.high + margin}, kDown, kTicksDown};
  }

  double y(double value) const { return kDown - y_.place(within(value)); }

  std::string legend() const {
    if (chart_.curves.size() == 1 && chart_.curves[0].name.empty()) return "";
    std::string html = "<ul class=\"legend\">\n";
    for (const Curve& curve : chart_.curves)
      html += fmt::format(
          "<li><svg viewBox=\"0 0 22 10\" aria-hidden=\"true\"><path class=\"{}\" d=\"M0 5h22\"/></svg>{}</li>\n",
          look(curve), escape_html(curve.name));
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
    labels += fmt::format("<span class=\"name-x\">{}</span>\n", escape_html(chart_.x_name));
    if (!chart_.y_name.empty()) labels += fmt::format("<span class=\"name-y\">{}</span>\n", escape_html(chart_.y_name));
    html += fmt::format("<path class=\"grid\" d=\"{}\"/>\n<path class=\"axis\" d=\"M0 {:g}h{:g}\"/>\n", grid, kDown,
                        kAcross);
    // Faint lines lie behind all others.
    for (const Curve& curve : chart_.curves)
      html += line(curve, curve.faint, fmt::format("class=\"{} faint\"", look(curve)));
    for (const Curve& curve : chart_.curves) {
      html += line(curve, curve.points, fmt::format("class=\"{}\"", look(curve)));
      if (curve.dots) html += dots(curve);
    }
    return html + "</svg>\n" + labels + "</div>\n";
  }

  // Non-finite values are gaps, marked at the top; a point between gaps is a dot.
  std::string line(const Curve& curve, const std::vector<Point>& points, const std::string& attributes) const {
    Path path, lost;
    for (size_t i = 0; i < points.size(); ++i) {
      const double x = x_.place(points[i].x);
      const bool after_one = i > 0 && std::isfinite(points[i - 1].y);
      const bool before_one = i + 1 < points.size() && std::isfinite(points[i + 1].y);
      if (!std::isfinite(points[i].y)) {
        lost.move(x, 0);
        lost.line(x, kDown / 25);
      } else if (after_one) {
        path.line(x, y(points[i].y));
      } else if (before_one) {
        path.move(x, y(points[i].y));
      } else {
        path.dot(x, y(points[i].y));
      }
    }
    return svg_path(attributes, path, curve.name) +
           svg_path("class=\"lost\"", lost, curve.name.empty() ? "not finite" : curve.name + ": not finite");
  }

  std::string dots(const Curve& curve) const {
    Path path;
    for (const Point& point : curve.points)
      if (std::isfinite(point.y)) path.dot(x_.place(point.x), y(point.y));
    return svg_path(fmt::format("class=\"c{} dots\"", curve.colour % kColours), path, "");
  }

  static std::string svg_path(const std::string& attributes, const Path& path, const std::string& title) {
    if (path.text().empty()) return "";
    const std::string inner = title.empty() ? "" : fmt::format("<title>{}</title>", escape_html(title));
    return fmt::format("<path {} d=\"{}\">{}</path>\n", attributes, path.text(), inner);
  }

  // Its colour, and a dash pattern by its index in the chart, so that coincident curves remain visible.
  std::string look(const Curve& curve) const {
    const auto number = static_cast<size_t>(&curve - chart_.curves.data());
    const size_t dashes = chart_.curves.size() == 1 ? 0 : (number + number / kColours) % kDashes;  // none twice in 32
    return fmt::format("c{}{}", curve.colour % kColours, dashes == 0 ? "" : fmt::format(" d{}", dashes));
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
