// A table of numbers in a CSV file: regression pairs, or labels of documents.
//
//   one line per sample, comma-separated numbers, equally many on each line; optionally a header of names
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace kintsugi::data {

class NumberTable {
 public:
  // Throws UserError "[data] "FILE":LINE: ..." for anything but finite numbers, and for lines of unequal length.
  explicit NumberTable(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  int64_t rows() const { return columns_ == 0 ? 0 : static_cast<int64_t>(numbers_.size()) / columns_; }
  int64_t columns() const { return columns_; }
  std::span<const float> row(int64_t i) const {
    return std::span(numbers_).subspan(static_cast<size_t>(i * columns_), static_cast<size_t>(columns_));
  }
  // Throws UserError unless all numbers of the column are integers in [0, classes); classes 0: unbounded. Returns the
  // maximum plus one.
  int64_t require_classes(int64_t column, int64_t classes) const;
  const std::string& fingerprint() const { return fingerprint_; }  // of the content

 private:
  std::filesystem::path path_;
  int64_t columns_ = 0;
  int64_t first_line_ = 1;  // the first line of the file with numbers
  std::vector<float> numbers_;
  std::string fingerprint_;
};

}  // namespace kintsugi::data
