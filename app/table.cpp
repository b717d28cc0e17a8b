#include "app/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/format.h"

namespace kintsugi::app {

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::vector<size_t> widths_of(const Rows& rows) {
  std::vector<size_t> width;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      width.resize(std::max(width.size(), i + 1));
      width[i] = std::max(width[i], row[i].size());
    }
  return width;
}

}  // namespace

std::string table(const Rows& rows) {
  const std::vector<size_t> width = widths_of(rows);
  std::string text;
  for (const auto& row : rows) {
    std::string line = fmt::format("  {:<{}}", row[0], width[0]);
    for (size_t i = 1; i < row.size(); ++i) line += fmt::format("  {:>{}}", row[i], width[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string table_within(size_t letters, const Rows& rows) {
  const std::vector<size_t> width = widths_of(rows);
  std::string text;
  for (size_t begin = 1, end = 1; begin < width.size(); begin = end) {
    for (size_t used = 2 + width[0]; end < width.size(); ++end) {
      used += 2 + width[end];
      if (end > begin && used > letters) break;
    }
    Rows part;
    for (const auto& row : rows) {
      part.push_back({row[0]});
      for (size_t i = begin; i < std::min(end, row.size()); ++i) part.back().push_back(row[i]);
    }
    text += table(part);
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
