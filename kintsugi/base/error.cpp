#include "kintsugi/base/error.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kintsugi/base/format.h"

namespace kintsugi::base {

namespace {

// The length of the longest part between semicolons.
size_t longest_part(std::string_view text) {
  size_t longest = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find("; ", begin), text.size());
    longest = std::max(longest, end - begin);
    begin = end + 2;
  }
  return longest;
}

}  // namespace

// A message is long only if it contains a long name or shape, or lists several short alternatives.
std::string message_of(std::string_view where, std::string_view what) {
  constexpr size_t kLongPart = 300, kLongest = 400, kLongestList = 1000;
  const std::string line = one_line(fmt::format("[{}] {}", where, what), SIZE_MAX);
  return without_middle(line, longest_part(line) > kLongPart ? kLongest : kLongestList);
}

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace kintsugi::base
