#include "kintsugi/report/thin.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kintsugi/base/error.h"

namespace kintsugi::report {
namespace {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

// Appends the points to keep among [begin, end).
void keep_of(std::span<const double> x, std::span<const double> y, size_t begin, size_t end, std::vector<Point>& kept) {
  size_t lowest = end, highest = end, gap = end;
  for (size_t i = begin; i < end; ++i) {
    if (!std::isfinite(y[i])) {
      if (gap == end) gap = i;
      continue;
    }
    if (lowest == end || y[i] < y[lowest]) lowest = i;
    if (highest == end || y[i] > y[highest]) highest = i;
  }
  std::vector<size_t> which = {begin, lowest, highest, gap, end - 1};
  std::ranges::sort(which);
  which.erase(std::unique(which.begin(), which.end()), which.end());
  for (const size_t i : which)
    if (i < end) kept.push_back({x[i], std::isfinite(y[i]) ? y[i] : kGap});
}

}  // namespace

std::vector<Point> thin(std::span<const double> x, std::span<const double> y, size_t buckets) {
  base::require(x.size() == y.size() && buckets > 0, "report", "{} places of {} values in {} parts", x.size(), y.size(),
                buckets);
  std::vector<Point> kept;
  if (x.empty()) return kept;
  const double width = (x.back() - x.front()) / static_cast<double>(buckets);
  const bool all = x.size() <= 5 * buckets || width <= 0;
  for (size_t begin = 0; begin < x.size();) {
    size_t end = begin + 1;
    if (!all) {
      const double next = std::floor((x[begin] - x.front()) / width) + 1;
      const bool last = next >= static_cast<double>(buckets);
      while (end < x.size() && (last || x[end] - x.front() < next * width)) ++end;
    }
    keep_of(x, y, begin, end, kept);
    begin = end;
  }
  return kept;
}

std::vector<double> moving_mean(std::span<const double> y, size_t half) {
  std::vector<double> means;
  double sum = 0, finite = 0;
  size_t begin = 0, end = 0;  // of the values in the sum
  for (size_t i = 0; i < y.size(); ++i) {
    // Use a symmetric window near the ends, so that the curve begins and ends at the values.
    const size_t side = std::min({half, i, y.size() - 1 - i});
    for (; end < i + side + 1; ++end)
      if (std::isfinite(y[end])) sum += y[end], ++finite;
    for (; begin < i - side; ++begin)
      if (std::isfinite(y[begin])) sum -= y[begin], --finite;
    means.push_back(finite > 0 ? sum / finite : kGap);
  }
  return means;
}

}  // namespace kintsugi::report
