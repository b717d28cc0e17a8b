// Building blocks of a self-contained HTML page: embedded style, no scripts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::report {

// Escapes the content of an element or a quoted attribute as one line: replaces control characters by spaces and
// invalid UTF-8 by question marks.
std::string escape_html(std::string_view text);

// The same, but keeps line breaks.
std::string escape_lines(std::string_view text);

struct Table {
  std::string align;              // a letter per column: l or r
  std::vector<std::string> head;  // empty: none
  std::vector<std::vector<std::string>> rows = {};
  std::vector<bool> marked = {};  // by row; empty: none
  bool wide = false;              // on narrow screens, scroll rather than squeeze it
};

// The following functions return HTML. They escape their texts, but not `body`, which is HTML.
std::string html_table(const Table& table);
std::string html_paragraph(std::string_view text);
std::string html_heading(std::string_view text);  // within a section
std::string html_section(std::string_view heading, std::string_view body);
// Collapsed by default, or expanded if `open`.
std::string html_details(std::string_view summary, std::string_view body, bool open = false);
// Preformatted lines in a fixed-width font.
std::string html_lines(std::string_view text);
// Embeds one of our own SVGs, scaled to the width of the page; narrow screens scroll. It is drawn for white paper; dark
// mode inverts its lightness.
std::string html_picture(std::string svg, std::string_view caption);
// A complete page.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace kintsugi::report
