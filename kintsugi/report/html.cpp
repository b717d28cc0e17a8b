#include "kintsugi/report/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/report/style.h"

namespace kintsugi::report {
namespace {

std::string html_row(std::string_view cell, const std::vector<std::string>& cells, std::string_view align,
                     bool marked) {
  std::string row = marked ? "<tr class=\"marked\">" : "<tr>";
  for (size_t i = 0; i < cells.size(); ++i)
    row += fmt::format("<{0}{1}>{2}</{0}>", cell, align[i] == 'r' ? " class=\"r\"" : "", escape_html(cells[i]));
  return row + "</tr>\n";
}

// Removes ` NAME="..."` from the first tag.
void drop_attribute(std::string& svg, std::string_view name) {
  const std::string begin = fmt::format(" {}=\"", name);
  const size_t end_of_tag = svg.find('>'), at = svg.find(begin);
  if (at == std::string::npos || at > end_of_tag) return;
  const size_t end = svg.find('"', at + begin.size());
  base::require(end != std::string::npos, "report", "an attribute of a picture is not closed");
  svg.erase(at, end + 1 - at);
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = base::utf8_length(text);
    switch (text[0]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        if (length == 0)
          out += '?';
        else if (length == 1 && (static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7f))
          out += ' ';
        else
          out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string escape_lines(std::string_view text) {
  std::string out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    out += (begin > 0 ? "\n" : "") + escape_html(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

std::string html_table(const Table& table) {
  std::string html = fmt::format("<div class=\"scroll\"><table{}>\n", table.wide ? " class=\"wide\"" : "");
  if (!table.head.empty()) html += "<thead>" + html_row("th", table.head, table.align, false) + "</thead>\n";
  html += "<tbody>\n";
  for (size_t i = 0; i < table.rows.size(); ++i) {
    base::require(table.rows[i].size() <= table.align.size(), "report", "a row of {} cells in a table of {} columns",
                  table.rows[i].size(), table.align.size());
    html += html_row("td", table.rows[i], table.align, i < table.marked.size() && table.marked[i]);
  }
  return html + "</tbody></table></div>\n";
}

std::string html_paragraph(std::string_view text) {
  return fmt::format("<p>{}</p>\n", escape_html(text));
}

std::string html_heading(std::string_view text) {
  return fmt::format("<h3>{}</h3>\n", escape_html(text));
}

std::string html_section(std::string_view heading, std::string_view body) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", escape_html(heading), body);
}

std::string html_details(std::string_view summary, std::string_view body, bool open) {
  return fmt::format("<details{}>\n<summary>{}</summary>\n{}</details>\n", open ? " open=\"\"" : "",
                     escape_html(summary), body);
}

std::string html_lines(std::string_view text) {
  std::string html = "<pre>";
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    html += escape_html(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return html + "</pre>\n";
}

std::string html_picture(std::string svg, std::string_view caption) {
  for (const std::string_view name : {"xmlns", "width", "height"}) drop_attribute(svg, name);
  return fmt::format("<figure class=\"picture\"><div class=\"scroll\">\n{}</div><figcaption>{}</figcaption></figure>\n",
                     svg, escape_html(caption));
}

std::string html_page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>\n{1}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n{2}</main>\n</body>\n</html>\n",
      escape_html(title), kStyle, body);
}

}  // namespace kintsugi::report
