// Writes an SVG picture line by line.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

namespace kintsugi::report {

class Svg {
 public:
  // White, with that size in px and a title that begins at `left`.
  Svg(double width, double height, double left, const std::string& title);

  std::string take();  // ends it

 protected:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

 private:
  std::string text_;
};

}  // namespace kintsugi::report
