// A line chart as a figure of an HTML page: lines as inline SVG that fills any width, labels next to it at the page's
// font size.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/report/thin.h"

namespace kintsugi::report {

struct Curve {
  std::string name;
  int colour = 0;                 // equal numbers have equal colours in all charts
  std::vector<Point> points;      // x ascending; a NaN is a marked gap
  bool dots = false;              // draw a dot at each point
  std::vector<Point> faint = {};  // drawn thinly behind it
};

// Empty until a value is added.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

struct Chart {
  std::string heading, note = {};
  std::string x_name = "step", y_name = {};  // axis labels, with units
  std::vector<Curve> curves;
  Range x_range = {};                                           // extends that of the curves
  bool from_zero = false;                                       // the axis begins at 0 unless values are negative
  std::function<std::string(double)> x_text = {}, y_text = {};  // formats a tick; default: the shortest decimals
};

// Uses a logarithmic axis if values are positive, differ by more than a factor of 20 and the axis need not begin at 0.
// The legend names each curve, except a single unnamed one.
std::string html_chart(const Chart& chart);

}  // namespace kintsugi::report
