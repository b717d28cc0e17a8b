// CSV output of the command.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace kintsugi::tests {

// The columns by name, a cell for each line.
inline std::map<std::string, std::vector<std::string>> columns_of(const std::string& csv) {
  std::istringstream lines(csv);
  std::vector<std::string> names;
  std::map<std::string, std::vector<std::string>> columns;
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> cells = {""};
    bool quoted = false;
    for (const char c : line) {
      if (c == '"')
        quoted = !quoted;
      else if (c == ',' && !quoted)
        cells.emplace_back();
      else
        cells.back() += c;
    }
    if (names.empty())
      names = std::move(cells);
    else
      for (size_t i = 0; i < names.size(); ++i) columns[names[i]].push_back(cells.at(i));
  }
  return columns;
}

}  // namespace kintsugi::tests
