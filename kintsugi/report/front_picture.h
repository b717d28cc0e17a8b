// Time and memory of layouts as a picture: those of which none is both slower and larger than another, joined.
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

// SVG. `front`: the fastest first; `others`: dots. `limit`: bytes of a device.
std::string front_picture(const std::vector<TimeAndMemory>& front, const std::vector<TimeAndMemory>& others,
                          int64_t limit, const std::string& title);

}  // namespace kintsugi::report
