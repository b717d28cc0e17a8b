#include "kintsugi/data/number_table.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"

namespace kintsugi::data {
namespace {

constexpr base::MostBytes kMost = {size_t{4} << 30, "a table of numbers"};

std::string_view trimmed(std::string_view cell) {
  while (!cell.empty() && (cell.front() == ' ' || cell.front() == '\t')) cell.remove_prefix(1);
  while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\t' || cell.back() == '\r')) cell.remove_suffix(1);
  return cell;
}

// Parses a cell as a single number, possibly infinite or NaN.
bool parse(std::string_view cell, float& number) {
  cell = trimmed(cell);
  if (cell.starts_with('+')) cell.remove_prefix(1);
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  return !cell.empty() && end == cell.data() + cell.size() && error == std::errc();
}

// Calls f(cell) for each cell of a line.
template <typename F>
void for_each_cell(std::string_view line, const F& f) {
  for (;;) {
    const size_t comma = std::min(line.find(','), line.size());
    f(line.substr(0, comma));
    if (comma == line.size()) return;
    line.remove_prefix(comma + 1);
  }
}

bool is_names(std::string_view line) {
  bool any = true;
  for_each_cell(line, [&](std::string_view cell) {
    float number = 0;
    any = any && !parse(cell, number);
  });
  return any;
}

}  // namespace

NumberTable::NumberTable(std::filesystem::path path) : path_(std::move(path)) {
  const std::string all = base::read_file(path_, kMost);
  fingerprint_ = fmt::format("{:016x}", XXH3_64bits(all.data(), all.size()));
  std::string_view text = all;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  int64_t line = 0;
  const auto fail = [&](const std::string& what) {
    throw base::UserError("data", "\"{}\":{}: {}", path_.string(), line, what);
  };
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view row = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line;
    if (row.empty()) {
      if (trimmed(text).empty()) break;  // at the end
      fail("an empty line between others");
    }
    if (line == 1 && is_names(row)) {
      first_line_ = 2;
      continue;
    }
    int64_t columns = 0;
    for_each_cell(row, [&](std::string_view cell) {
      float number = 0;
      if (!parse(cell, number))
        fail(fmt::format("\"{}\" is not an fp32 number; a line holds numbers separated by commas",
                         base::one_line(cell, 40)));
      if (!std::isfinite(number)) fail(fmt::format("{} is not finite", base::one_line(trimmed(cell), 40)));
      numbers_.push_back(number);
      ++columns;
    });
    if (columns_ == 0) columns_ = columns;
    if (columns != columns_) fail(fmt::format("{} numbers, where the first line of numbers has {}", columns, columns_));
  }
  if (rows() == 0) throw base::UserError("data", "\"{}\" holds no numbers", path_.string());
}

int64_t NumberTable::require_classes(int64_t column, int64_t classes) const {
  int64_t most = 0;
  for (int64_t i = 0; i < rows(); ++i) {
    const float number = row(i)[static_cast<size_t>(column)];
    const bool whole = number >= 0 && number == std::floor(number) && number < 16777216.0f;
    if (!whole || (classes > 0 && number >= static_cast<float>(classes)))
      throw base::UserError("data", "\"{}\":{}: {} is not a class; classes are 0 to {}", path_.string(),
                            first_line_ + i, number,
                            classes > 0 ? fmt::format("{}", classes - 1) : "their number minus 1");
    most = std::max(most, static_cast<int64_t>(number) + 1);
  }
  return most;
}

}  // namespace kintsugi::data
