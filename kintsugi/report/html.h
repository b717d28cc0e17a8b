// Pieces of an HTML page that needs nothing but itself: its style is within it, and nothing in it is a program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::report {

// As the content of an element or a quoted attribute, in one line: control characters become spaces, and bytes that are
// not UTF-8 question marks.
std::string escape_html(std::string_view text);

// The same, but line breaks stay.
std::string escape_lines(std::string_view text);

struct Table {
  std::string align;              // a letter for each column: l or r
  std::vector<std::string> head;  // empty: none
  std::vector<std::vector<std::string>> rows = {};
  std::vector<bool> marked = {};  // by row; empty: none
  bool wide = false;              // on a narrow screen it is scrolled rather than squeezed
};

// All that follow return HTML. Their texts are escaped, but `body` is HTML.
std::string html_table(const Table& table);
std::string html_paragraph(std::string_view text);
std::string html_heading(std::string_view text);  // within a section
std::string html_section(std::string_view heading, std::string_view body);
// Folded away until it is asked for, or `open` until it is folded.
std::string html_details(std::string_view summary, std::string_view body, bool open = false);
// Lines as they are, in a fixed width.
std::string html_lines(std::string_view text);
// An SVG of our own, fitted to the width of the page; a reader of a narrow one scrolls. It is drawn for white paper,
// and in the dark its light and dark are exchanged.
std::string html_picture(std::string svg, std::string_view caption);
// A whole page.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace kintsugi::report
