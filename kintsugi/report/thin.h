// Thins curves of many points to what a chart can show.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kintsugi::report {

struct Point {
  double x = 0, y = 0;  // y may be NaN: a gap
};

// Returns the points of x (ascending) and y, at most five per each of `buckets` equal parts of the range of x: first,
// last, minimum, maximum, and the first non-finite one, which becomes a gap. Preserves order; returns all points if
// there are no more than that.
std::vector<Point> thin(std::span<const double> x, std::span<const double> y, size_t buckets);

// At each point the mean of the finite values from `half` points before to `half` after; NaN where there are none.
std::vector<double> moving_mean(std::span<const double> y, size_t half);

}  // namespace kintsugi::report
