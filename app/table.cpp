#include "app/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/format.h"

namespace kintsugi::app {

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> width;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      width.resize(std::max(width.size(), i + 1));
      width[i] = std::max(width[i], row[i].size());
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line = fmt::format("  {:<{}}", row[0], width[0]);
    for (size_t i = 1; i < row.size(); ++i) line += fmt::format("  {:>{}}", row[i], width[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string time_cell(double seconds) {
  return seconds >= 1      ? fmt::format("{:.3f} s", seconds)
         : seconds >= 1e-3 ? fmt::format("{:.2f} ms", seconds * 1e3)
                           : fmt::format("{:.1f} us", seconds * 1e6);
}

std::string bytes_cell(double bytes) {
  return bytes > 0 ? base::format_bytes(static_cast<uint64_t>(bytes + 0.5)) : "";
}

}  // namespace kintsugi::app
