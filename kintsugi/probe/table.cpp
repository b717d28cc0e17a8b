#include "kintsugi/probe/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"

namespace kintsugi::probe {
namespace {

constexpr base::MostBytes kMostOfTable = {size_t{4} << 30, "a table of features"};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::optional<double> to_number(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::vector<std::string> cells_of(const std::filesystem::path& path, int64_t line, std::string_view text) {
  std::vector<std::string> cells;
  for (size_t at = 0;;) {
    std::string cell;
    if (at < text.size() && text[at] == '"') {
      bool closed = false;
      for (++at; at < text.size() && !closed; ++at) {
        if (text[at] != '"') {
          cell += text[at];
        } else if (at + 1 < text.size() && text[at + 1] == '"') {
          cell += text[at++];
        } else {
          closed = true;
        }
      }
      if (!closed || (at < text.size() && text[at] != ','))
        throw base::UserError("probe", "\"{}\":{}: a cell begins with a quote that does not end before the next comma",
                              path.string(), line);
    } else {
      const size_t end = std::min(text.find(',', at), text.size());
      cell = trimmed(text.substr(at, end - at));
      at = end;
    }
    cells.push_back(std::move(cell));
    if (at >= text.size()) return cells;
    ++at;  // the comma
  }
}

}  // namespace

size_t CsvTable::column(std::string_view name) const {
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    throw base::UserError("probe", "\"{}\" has no column {}; it has {}", path.string(), base::in_quotes(name, 60),
                          base::one_line(fmt::format("{}", fmt::join(names, ", "))));
  return static_cast<size_t>(found - names.begin());
}

double CsvTable::number(size_t row, size_t column) const {
  const std::optional<double> value = to_number(rows[row][column]);
  if (!value || !std::isfinite(*value))
    throw base::UserError("probe", "\"{}\":{}: {} of column {} is not a finite number", path.string(), lines[row],
                          base::in_quotes(rows[row][column], 60), base::in_quotes(names[column], 60));
  return *value;
}

Matrix CsvTable::numbers(const std::vector<size_t>& columns) const {
  Matrix x(rows.size(), columns.size());
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t c = 0; c < columns.size(); ++c) x(r, c) = number(r, columns[c]);
  return x;
}

CsvTable read_csv(const std::filesystem::path& path) {
  const std::string all = base::read_file(path, kMostOfTable);
  CsvTable table = {.path = path};
  int64_t line = 0;
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find('\n', begin), all.size());
    std::string_view text = std::string_view(all).substr(begin, end - begin);
    begin = end + 1;
    ++line;
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (trimmed(text).empty()) continue;
    std::vector<std::string> cells = cells_of(path, line, text);
    if (table.names.empty()) {
      const bool header = std::ranges::any_of(cells, [](const std::string& cell) { return !to_number(cell); });
      for (size_t i = 0; i < cells.size(); ++i) table.names.push_back(header ? cells[i] : fmt::format("{}", i + 1));
      if (header) continue;
    }
    if (cells.size() != table.names.size())
      throw base::UserError("probe", "\"{}\":{}: {}, and the first line has {}", path.string(), line,
                            base::counted(std::ssize(cells), "cell"), table.names.size());
    table.rows.push_back(std::move(cells));
    table.lines.push_back(line);
  }
  if (table.rows.empty()) throw base::UserError("probe", "\"{}\" has no rows", path.string());
  return table;
}

Matrix read_npy(const std::filesystem::path& path) {
  const std::string all = base::read_file(path, kMostOfTable);
  const auto damaged = [&](std::string_view what) {
    return base::UserError("probe", "\"{}\" is not an array of fp32 or fp64 numbers [rows columns]: {}", path.string(),
                           what);
  };
  if (all.size() < 10 || !all.starts_with("\x93NUMPY")) throw damaged("it does not begin as a .npy file does");
  const bool wide = all[6] != 1;  // the length of the header in 4 bytes instead of 2
  size_t length = 0, header_at = wide ? 12 : 10;
  if (all.size() < header_at) throw damaged("its header is incomplete");
  for (size_t i = header_at; i-- > 8;) length = length << 8 | static_cast<unsigned char>(all[i]);
  if (length > all.size() - header_at) throw damaged("its header is incomplete");
  const std::string_view header = std::string_view(all).substr(header_at, length);
  const auto value_of = [&](std::string_view key) {
    const size_t at = header.find(fmt::format("'{}':", key));
    return at == std::string_view::npos ? std::string_view() : trimmed(header.substr(at + key.size() + 3));
  };
  const std::string_view type = value_of("descr"), order = value_of("fortran_order");
  std::string_view shape = value_of("shape");
  const size_t bytes = type.starts_with("'<f4'") ? 4 : type.starts_with("'<f8'") ? 8 : 0;
  if (bytes == 0) throw damaged("its type is " + base::one_line(type.substr(0, type.find(',')), 20));
  if (!order.starts_with("False")) throw damaged("it is stored by columns");
  size_t sizes[2] = {}, count = 0;
  if (shape.starts_with('(')) shape.remove_prefix(1);
  while (!shape.empty() && shape.front() != ')') {
    shape = trimmed(shape);
    size_t size = 0;
    const auto [end, error] = std::from_chars(shape.data(), shape.data() + shape.size(), size);
    if (error != std::errc() || count == 2) throw damaged("its shape has another number of dims");
    sizes[count++] = size;
    shape.remove_prefix(static_cast<size_t>(end - shape.data()));
    if (shape.starts_with(',')) shape.remove_prefix(1);
    shape = trimmed(shape);
  }
  if (count != 2 || sizes[0] == 0 || sizes[1] == 0) throw damaged("its shape has another number of dims, or is empty");
  const size_t held = (all.size() - header_at - length) / bytes;
  if (sizes[1] > held || sizes[0] > held / sizes[1] || sizes[0] * sizes[1] != held)
    throw damaged(fmt::format("{} x {} numbers are announced, and the file has {}", sizes[0], sizes[1], held));
  Matrix x(sizes[0], sizes[1]);
  const char* from = all.data() + header_at + length;
  for (size_t i = 0; i < x.values.size(); ++i) {
    if (bytes == 4) {
      float value = 0;
      std::memcpy(&value, from + 4 * i, 4);
      x.values[i] = static_cast<double>(value);
    } else {
      std::memcpy(&x.values[i], from + 8 * i, 8);
    }
    if (!std::isfinite(x.values[i]))
      throw base::UserError("probe", "\"{}\": the number in row {}, column {} is not finite", path.string(),
                            i / x.columns + 1, i % x.columns + 1);
  }
  return x;
}

Classes classes_of(const CsvTable& table, size_t column) {
  std::set<std::string> names;
  for (const auto& row : table.rows) names.insert(row[column]);
  Classes classes = {.names = {names.begin(), names.end()}};
  for (const auto& row : table.rows)
    classes.labels.push_back(
        static_cast<size_t>(std::ranges::lower_bound(classes.names, row[column]) - classes.names.begin()));
  return classes;
}

std::vector<int64_t> matching_rows(const CsvTable& keys, size_t key_column, const CsvTable& table, size_t column) {
  const auto key_of = [](const std::string& cell) {
    const std::optional<double> number = to_number(cell);
    return number ? fmt::format("{}", *number) : "\"" + cell;
  };
  std::map<std::string, int64_t> row_of;
  for (size_t r = 0; r < table.rows.size(); ++r)
    if (!row_of.emplace(key_of(table.rows[r][column]), static_cast<int64_t>(r)).second)
      throw base::UserError("probe", "\"{}\":{}: {} occurs twice in column {}", table.path.string(), table.lines[r],
                            base::in_quotes(table.rows[r][column], 60), base::in_quotes(table.names[column], 60));
  std::vector<int64_t> found;
  for (const auto& row : keys.rows) {
    const auto at = row_of.find(key_of(row[key_column]));
    found.push_back(at == row_of.end() ? -1 : at->second);
  }
  return found;
}

}  // namespace kintsugi::probe
