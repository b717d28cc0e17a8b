#include "app/sample_lines.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/terminal.h"
#include "kintsugi/base/format.h"

namespace kintsugi::app {
namespace {

// The beginning of a line that is too long: up to the last space within `columns`, or up to there.
std::string_view piece_of(std::string_view line, int columns) {
  const std::string_view fits = fit_columns(line, columns);
  if (fits.size() == line.size()) return line;
  const size_t space = fits.rfind(' ');
  return space == std::string_view::npos || space == 0 ? fits : fits.substr(0, space + 1);
}

}  // namespace

std::vector<std::string> sample_lines(std::string_view prompt, std::string_view text, int columns, size_t most) {
  constexpr std::string_view kFirst = "  > ", kMargin = "  | ";
  const int room = std::max(8, columns - static_cast<int>(kMargin.size()));
  std::string whole = std::string(prompt) + std::string(text);
  while (whole.ends_with('\n')) whole.pop_back();
  std::vector<std::string> lines;
  for (size_t begin = 0; begin <= whole.size();) {
    const size_t end = std::min(whole.find('\n', begin), whole.size());
    const std::string shown = base::one_line(std::string_view(whole).substr(begin, end - begin), SIZE_MAX);
    std::string_view left = shown;
    do {
      const std::string_view piece = piece_of(left, room);
      lines.push_back(std::string(lines.empty() ? kFirst : kMargin) + std::string(piece));
      left.remove_prefix(piece.size());
    } while (!left.empty());
    begin = end + 1;
  }
  if (lines.size() > most) {
    const size_t more = lines.size() - most + 1;
    lines.resize(most - 1);
    lines.push_back(fmt::format("  ... {} more lines, in metrics.jsonl", more));
  }
  return lines;
}

}  // namespace kintsugi::app
