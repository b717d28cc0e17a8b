// docs/operations.md names the operands and outputs of every operation as its row does.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "kintsugi/base/file.h"
#include "kintsugi/ops/rows.h"
#include "tests/paths.h"
#include "tests/patterns.h"

namespace kintsugi::tests::operations_page_test {
namespace {

// "q `[batch seq]`, [starts (S)], o `=q`" -> "q, [starts], o =q"
std::string without_shapes(std::string cell) {
  cell = replaced(cell, "`(=[a-z_]+)`", "$1");
  cell = replaced(cell, " `[^`]*`| \\([^)]*\\)| fp64| like [a-z]+", "");
  return cell;
}

// The cells of each line that describes an operation, by its name.
std::map<std::string, std::vector<std::string>> lines_of_page() {
  std::map<std::string, std::vector<std::string>> lines;
  std::istringstream page(base::read_file(source_folder() + "/docs/operations.md"));
  for (std::string line; std::getline(page, line) && line != "## Padding";) {
    if (!line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    for (size_t at = 1; at < line.size();) {
      const size_t end = std::min(line.find('|', at), line.size());
      const std::string cell = line.substr(at, end - at);
      const size_t first = cell.find_first_not_of(' '), last = cell.find_last_not_of(' ');
      cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
      at = end + 1;
    }
    for (const std::string& kind : tensor::words(replaced(cells[0], "[`,]", ""))) {
      EXPECT_FALSE(lines.contains(kind)) << kind;
      lines[kind] = cells;
    }
  }
  return lines;
}

std::string text(const graph::OpRow& row, const tensor::OperandList& list, bool outputs) {
  std::string all;
  for (const tensor::Operand& o : list) {
    std::string one(o.name);
    if (outputs && row.can_accumulate(o.name)) one += "+";
    if (o.optional) one = "[" + one + "]";
    if (o.rest) one += " ...";
    for (const auto& [output, input] : row.in_place)
      if (outputs && output == o.name) one += " =" + std::string(input);
    all += (all.empty() ? "" : ", ") + one;
  }
  return all;
}

}  // namespace

TEST(OperationsPage, NamesWhatTheRowsName) {
  const std::set<std::string_view> without = {"state", "input", "output", "rename", "assign"};  // they have no kernel
  std::map<std::string, std::vector<std::string>> lines = lines_of_page();
  for (const graph::OpRow& row : ops::operations().rows()) {
    if (without.contains(row.kind)) continue;
    const auto line = lines.find(std::string(row.kind));
    ASSERT_NE(line, lines.end()) << row.kind;
    ASSERT_EQ(line->second.size(), 5u) << row.kind;
    EXPECT_EQ(without_shapes(line->second[1]), text(row, row.ins, false)) << row.kind;
    EXPECT_EQ(without_shapes(line->second[2]), text(row, row.outs, true)) << row.kind;
    lines.erase(line);
  }
  for (const auto& [kind, cells] : lines) ADD_FAILURE() << kind << " is no operation";
}

}  // namespace kintsugi::tests::operations_page_test
