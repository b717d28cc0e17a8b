// Tables of text.
#pragma once

#include <string>
#include <vector>

namespace kintsugi::app {

// Rows of cells, the first column aligned left and the others right, each column as wide as needed; indented by two.
std::string table(const std::vector<std::vector<std::string>>& rows);

// Cells: "1.234 s", "1.23 ms", "1.2 us"; and "1.5 MiB", nothing for none.
std::string time_cell(double seconds);
std::string bytes_cell(double bytes);

}  // namespace kintsugi::app
