// Streams generated text up to a stop text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::evaluate {

// Withholds text that may be the beginning of a stop text.
class StopText {
 public:
  explicit StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Returns the text that is safe to show now; empty once a stop text was found.
  std::string push(std::string_view text);
  // Returns the rest at the end.
  std::string finish();
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace kintsugi::evaluate
