// The text of a generation as it comes, up to a stop text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::evaluate {

// Holds back what may be the beginning of a stop text.
class StopText {
 public:
  explicit StopText(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // What can be shown now. After a stop text is found, nothing more comes.
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
