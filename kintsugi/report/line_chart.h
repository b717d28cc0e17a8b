// A chart of curves, as a figure of an HTML page: lines as inline SVG that fills any width, texts beside it at the size
// of the page's.
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
  int colour = 0;                 // the same number is the same colour in all charts
  std::vector<Point> points;      // x ascends; a NaN is a gap, and marked
  bool dots = false;              // a dot at each point
  std::vector<Point> faint = {};  // drawn behind it, thin
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
  std::string x_name = "step", y_name = {};  // of the axes, with units
  std::vector<Curve> curves;
  Range x_range = {};      // in addition to that of the curves
  bool from_zero = false;  // the lower end of the axis is 0, where no value is less
  std::function<std::string(double)> x_text = {}, y_text = {};  // of a tick; the shortest decimals if not given
};

// Values that differ by more than a factor of 20 are drawn on an axis of logarithms, if all are above 0 and it need not
// begin at 0. A name in the legend for each curve, but for a single one without a name.
std::string html_chart(const Chart& chart);

}  // namespace kintsugi::report
