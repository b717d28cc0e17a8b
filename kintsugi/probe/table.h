// Tables of features and labels: CSV files, and arrays in NumPy's format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/probe/matrix.h"

namespace kintsugi::probe {

// A CSV file: cells separated by commas, optionally in double quotes. The first line has the names of the columns,
// unless all of its cells are numbers; then the columns are named "1", "2" and so on.
struct CsvTable {
  std::filesystem::path path = {};
  std::vector<std::string> names = {};
  std::vector<std::vector<std::string>> rows = {};  // all of names.size() cells
  std::vector<int64_t> lines = {};                  // the line of each row

  // Throws UserError for an unknown name, listing the known ones.
  size_t column(std::string_view name) const;
  // Throws UserError, naming file, line and column, for a cell that is not a finite number.
  double number(size_t row, size_t column) const;
  // Of several columns.
  Matrix numbers(const std::vector<size_t>& columns) const;
};

// Throws UserError, naming file and line, for lines of unequal length, an unterminated quote, and a file without rows.
CsvTable read_csv(const std::filesystem::path& path);

// [rows columns] of fp32 or fp64, row-major. Throws UserError for other arrays, damaged files, and values that are not
// finite.
Matrix read_npy(const std::filesystem::path& path);

// The classes of texts, sorted, and the class of each.
struct Classes {
  std::vector<std::string> names = {};
  std::vector<size_t> labels = {};
};
Classes classes_of(const CsvTable& table, size_t column);

// For each row of `keys`, the row of `table` whose `column` has the same value, as a number if both are; -1 for none.
// Throws UserError for a value that occurs twice.
std::vector<int64_t> matching_rows(const CsvTable& keys, size_t key_column, const CsvTable& table, size_t column);

}  // namespace kintsugi::probe
