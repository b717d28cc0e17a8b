// The text of a generation as it is produced, up to a stop text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::evaluate {

// Holds back what may be the beginning of a stop text.
class StopText {
 public:
  explicit StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // The text that can be shown now. Empty after a stop text was found.
  std::string push(std::string_view text);
  // The rest, at the end.
  std::string finish();
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace kintsugi::evaluate
