// A character grid for terminals.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::report {

// The style of a character where colours are available.
enum class Ink : uint8_t { normal, strong, soft, first, second, bad };

enum class Characters : uint8_t { ascii, unicode };

class TextCanvas {
 public:
  TextCanvas(int columns, int rows, Characters characters);

  int columns() const { return columns_; }
  int rows() const { return rows_; }
  Characters characters() const { return characters_; }

  // Writes from a position to the right and clips at the end of the row. Escapes control characters and invalid UTF-8;
  // with `ascii`, replaces other characters by question marks.
  void write(int row, int column, std::string_view text, Ink ink = Ink::normal);
  // The same to the left: ends before `column`.
  void write_before(int row, int column, std::string_view text, Ink ink = Ink::normal);

  // The rows without trailing spaces. `colour`: with terminal escapes, reset at the end of each row.
  std::vector<std::string> lines(bool colour) const;

 private:
  struct Cell {
    std::string text = " ";  // "": second half of the preceding wide character
    Ink ink = Ink::normal;
  };
  Cell& at(int row, int column) { return cells_[static_cast<size_t>(row * columns_ + column)]; }
  const Cell& at(int row, int column) const { return cells_[static_cast<size_t>(row * columns_ + column)]; }

  int columns_, rows_;
  Characters characters_;
  std::vector<Cell> cells_;
};

// The number of columns of a text, and its longest prefix of at most that many columns.
int columns_of(std::string_view text);
std::string_view first_columns(std::string_view text, int columns);

}  // namespace kintsugi::report
