// Round numbers for the axes of charts.
#pragma once

#include <vector>

namespace kintsugi::report {

// 1, 2 or 5 times a power of ten, so that there are about `count` of them up to `most`.
double round_step(double most, double count);

// About `count` round numbers from `low` to `high`.
std::vector<double> ticks(double low, double high, double count);
// The same for an axis of logarithms, 0 < low <= high.
std::vector<double> log_ticks(double low, double high, double count);

}  // namespace kintsugi::report
