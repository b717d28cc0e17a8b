// Plots time and memory of layouts, with the Pareto front connected.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kintsugi::report {

struct TimeAndMemory {
  double seconds = 0;  // of a step
  int64_t bytes = 0;   // of the rank that needs most
  std::string name;
};

// Returns SVG. `front`: fastest first; `others`: dots. `limit`: memory of a device in bytes.
std::string front_picture(const std::vector<TimeAndMemory>& front, const std::vector<TimeAndMemory>& others,
                          int64_t limit, const std::string& title);

}  // namespace kintsugi::report
