// Round numbers for chart axes.
#pragma once

#include <vector>

namespace kintsugi::report {

// 1, 2 or 5 times a power of ten, such that about `count` steps reach `most`.
double round_step(double most, double count);

// About `count` round numbers from `low` to `high`.
std::vector<double> ticks(double low, double high, double count);
// The same for a logarithmic axis, 0 < low <= high.
std::vector<double> log_ticks(double low, double high, double count);

}  // namespace kintsugi::report
