// A line of what `show` prints.
#pragma once

#include <fmt/format.h>

#include <string_view>

namespace kintsugi::app {

inline void print_entry(std::string_view name, std::string_view value) {
  fmt::print("{:<12} {}\n", name, value);
}

}  // namespace kintsugi::app
