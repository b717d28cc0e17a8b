// For tests that a pass takes time in proportion to the program.
#pragma once

#include <algorithm>
#include <ctime>
#include <limits>

namespace kintsugi::lower {

// Processor seconds of a call.
template <typename F>
double seconds_of(F&& call) {
  const std::clock_t began = std::clock();
  call();
  return static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
}

// The time for 8,000 layers over that for 1,000, in the best of five runs: 8 if it is linear, 64 if quadratic.
// seconds: of a number of layers.
template <typename F>
double growth(F&& seconds) {
  double few = std::numeric_limits<double>::max(), many = few;
  for (int run = 0; run < 5; ++run) {
    few = std::min(few, seconds(1000));
    many = std::min(many, seconds(8000));
  }
  return many / few;
}

}  // namespace kintsugi::lower
