// A table of numbers in a CSV file: the pairs of a regression, or the labels of documents.
//
//   a line for each sample, numbers separated by commas, all lines of as many; perhaps a first line of names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace kintsugi::data {

class NumberTable {
 public:
  // UserError "[data] "FILE":LINE: ..." for anything but numbers, NaN and infinities included, and lines that differ in
  // length.
  explicit NumberTable(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  int64_t rows() const { return columns_ == 0 ? 0 : static_cast<int64_t>(numbers_.size()) / columns_; }
  int64_t columns() const { return columns_; }
  std::span<const float> row(int64_t i) const {
    return std::span(numbers_).subspan(static_cast<size_t>(i * columns_), static_cast<size_t>(columns_));
  }
  // UserError unless all numbers of the column are whole and in [0, classes); classes 0: not bounded. Returns the
  // largest, plus one.
  int64_t require_classes(int64_t column, int64_t classes) const;
  const std::string& fingerprint() const { return fingerprint_; }  // of the content

 private:
  std::filesystem::path path_;
  int64_t columns_ = 0;
  int64_t first_line_ = 1;  // of the file, that has numbers
  std::vector<float> numbers_;
  std::string fingerprint_;
};

}  // namespace kintsugi::data
