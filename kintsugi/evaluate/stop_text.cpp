#include "kintsugi/evaluate/stop_text.h"

#include <algorithm>
#include <utility>

namespace kintsugi::evaluate {

std::string StopText::push(std::string_view text) {
  if (found_) return "";
  held_ += text;
  size_t first = std::string::npos;
  for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
  if (first != std::string::npos) {
    found_ = true;
    return std::exchange(held_, "").substr(0, first);
  }
  size_t keep = 0;  // the longest suffix of the text that begins a stop text
  for (const std::string& stop : stops_)
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > keep; --n)
      if (held_.ends_with(std::string_view(stop).substr(0, n))) keep = n;
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopText::finish() {
  return found_ ? "" : std::exchange(held_, "");
}

}  // namespace kintsugi::evaluate
