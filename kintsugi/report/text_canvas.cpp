#include "kintsugi/report/text_canvas.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::report {
namespace {

struct Range {
  char32_t first, last;
};
// Unicode Standard Annex 11 (East Asian width): blocks of wide characters.
constexpr std::array<Range, 12> kWide = {{{0x1100, 0x115f},
                                          {0x2e80, 0x303e},
                                          {0x3041, 0x33ff},
                                          {0x3400, 0x4dbf},
                                          {0x4e00, 0xa4cf},
                                          {0xa960, 0xa97f},
                                          {0xac00, 0xd7a3},
                                          {0xf900, 0xfaff},
                                          {0xfe30, 0xfe6f},
                                          {0xff00, 0xff60},
                                          {0x1f300, 0x1faff},
                                          {0x20000, 0x3fffd}}};
// Combining marks and other zero-width characters.
constexpr std::array<Range, 8> kOver = {{{0x300, 0x36f},
                                         {0x1ab0, 0x1aff},
                                         {0x1dc0, 0x1dff},
                                         {0x200b, 0x200f},
                                         {0x20d0, 0x20ff},
                                         {0xfe00, 0xfe0f},
                                         {0xfe20, 0xfe2f},
                                         {0xe0100, 0xe01ef}}};

template <size_t N>
bool within(const std::array<Range, N>& ranges, char32_t c) {
  return std::ranges::any_of(ranges, [&](const Range& r) { return c >= r.first && c <= r.last; });
}

char32_t code_of(std::string_view character) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(character[i])); };
  if (character.size() == 1) return byte(0);
  char32_t code = byte(0) & (0x7fu >> character.size());
  for (size_t i = 1; i < character.size(); ++i) code = code << 6 | (byte(i) & 0x3f);
  return code;
}

int width_of(std::string_view character) {
  const char32_t code = code_of(character);
  return within(kOver, code) ? 0 : within(kWide, code) ? 2 : 1;
}

// Calls f(character, width) until it returns false.
template <typename F>
void for_each_character(std::string_view text, F&& f) {
  while (!text.empty()) {
    const std::string_view character = text.substr(0, std::max<size_t>(1, base::utf8_length(text)));
    if (!f(character, width_of(character))) return;
    text.remove_prefix(character.size());
  }
}

std::string_view escape_of(Ink ink) {
  switch (ink) {
    case Ink::normal:
      return "";
    case Ink::strong:
      return "\x1b[1m";
    case Ink::soft:
      return "\x1b[2m";
    case Ink::first:
      return "\x1b[36m";
    case Ink::second:
      return "\x1b[33m";
    case Ink::bad:
      return "\x1b[31m";
  }
  throw base::InternalError("report", "no ink {}", static_cast<int>(ink));
}

}  // namespace

int columns_of(std::string_view text) {
  int columns = 0;
  for_each_character(text, [&](std::string_view, int width) { return columns += width, true; });
  return columns;
}

std::string_view first_columns(std::string_view text, int columns) {
  size_t bytes = 0;
  for_each_character(text, [&](std::string_view character, int width) {
    columns -= width;
    if (columns < 0) return false;
    bytes += character.size();
    return true;
  });
  return text.substr(0, bytes);
}

TextCanvas::TextCanvas(int columns, int rows, Characters characters)
    : columns_(columns), rows_(rows), characters_(characters), cells_(static_cast<size_t>(columns * rows)) {}

void TextCanvas::write(int row, int column, std::string_view text, Ink ink) {
  if (row < 0 || row >= rows_ || column < 0) return;
  const std::string safe = base::one_line(text, text.size() * 4 + 16);
  int last = -1;
  for_each_character(safe, [&](std::string_view character, int width) {
    if (width == 0 && last >= 0 && characters_ == Characters::unicode) at(row, last).text += character;
    if (width == 0) return true;
    if (characters_ == Characters::ascii && character.size() > 1) {
      character = "?";
      width = 1;
    }
    if (column + width > columns_) return false;
    at(row, last = column) = {std::string(character), ink};
    if (width == 2) at(row, column + 1) = {"", ink};
    column += width;
    return true;
  });
}

void TextCanvas::write_before(int row, int column, std::string_view text, Ink ink) {
  write(row, std::max(0, column - columns_of(text)), text, ink);
}

std::vector<std::string> TextCanvas::lines(bool colour) const {
  std::vector<std::string> all;
  for (int row = 0; row < rows_; ++row) {
    int end = columns_;
    while (end > 0 && at(row, end - 1).text == " ") --end;
    std::string line;
    Ink now = Ink::normal;
    for (int column = 0; column < end; ++column) {
      const Cell& cell = at(row, column);
      if (colour && cell.ink != now && cell.text != " ") {
        if (now != Ink::normal) line += "\x1b[0m";
        line += escape_of(cell.ink);
        now = cell.ink;
      }
      line += cell.text;
    }
    if (now != Ink::normal) line += "\x1b[0m";
    all.push_back(std::move(line));
  }
  return all;
}

}  // namespace kintsugi::report
