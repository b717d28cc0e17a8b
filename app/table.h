// Tables of text.
#pragma once

#include <string>
#include <vector>

namespace kintsugi::app {

// Rows of cells, the first column aligned left and the others right, each column as wide as needed; indented by two.
std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace kintsugi::app
