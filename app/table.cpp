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

std::string bytes_cell(double bytes) {
  return bytes > 0 ? base::format_bytes(static_cast<uint64_t>(bytes + 0.5)) : "";
}

std::string number_cell(double count) {
  return count < 9999.5 ? fmt::format("{:.4g}", count) : base::format_count(count);
}

}  // namespace kintsugi::app
