// A screen of characters, for terminals.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::report {

// What a character is drawn with, where there are colours.
enum class Ink : uint8_t { normal, strong, soft, first, second, bad };

enum class Characters : uint8_t { ascii, unicode };

class TextCanvas {
 public:
  TextCanvas(int columns, int rows, Characters characters);

  int columns() const { return columns_; }
  int rows() const { return rows_; }
  Characters characters() const { return characters_; }

  // From a place on, to the end of the row; what does not fit is left out. Control characters and bytes that are not
  // UTF-8 are written as escapes; with `ascii` other characters are question marks.
  void write(int row, int column, std::string_view text, Ink ink = Ink::normal);
  // The same to its left: it ends before `column`.
  void write_before(int row, int column, std::string_view text, Ink ink = Ink::normal);

  // Row by row, without spaces at the end. `colour`: with the escapes of a terminal, and none open at the end of a row.
  std::vector<std::string> lines(bool colour) const;

 private:
  struct Cell {
    std::string text = " ";  // "": the second half of the character before
    Ink ink = Ink::normal;
  };
  Cell& at(int row, int column) { return cells_[static_cast<size_t>(row * columns_ + column)]; }
  const Cell& at(int row, int column) const { return cells_[static_cast<size_t>(row * columns_ + column)]; }

  int columns_, rows_;
  Characters characters_;
  std::vector<Cell> cells_;
};

// The columns that text takes, and the beginning of it that takes at most so many.
int columns_of(std::string_view text);
std::string_view first_columns(std::string_view text, int columns);

}  // namespace kintsugi::report
