// Curves of many points, thinned to what a chart can show.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kintsugi::report {

struct Point {
  double x = 0, y = 0;  // y may be NaN: a gap
};

// The points of x (ascending) and y, at most five for each of `buckets` equal parts of the range of x: the first, the
// last, the lowest, the highest, and the first that is not finite, which becomes a gap. In their order; all of them if
// there are no more than that.
std::vector<Point> thin(std::span<const double> x, std::span<const double> y, size_t buckets);

// At each point the mean of the finite values from `half` points before it to `half` after it; NaN where there are
// none.
std::vector<double> moving_mean(std::span<const double> y, size_t half);

}  // namespace kintsugi::report
