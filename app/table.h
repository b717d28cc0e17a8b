// Tables of text.
#pragma once

#include <string>
#include <vector>

namespace kintsugi::app {

// Rows of cells, the first column left-aligned and the others right-aligned, each as wide as needed; indented by two.
std::string table(const std::vector<std::vector<std::string>>& rows);

// The same, at most this wide: columns that do not fit follow below, after the first one again.
std::string table_within(size_t letters, const std::vector<std::vector<std::string>>& rows);

// Cells of at most 8 letters.
std::string bytes_cell(double bytes);   // "1.5 MiB", nothing for none
std::string number_cell(double count);  // "0.5", "1234", "12.3 k"

}  // namespace kintsugi::app
