#include "kintsugi/tasks/template.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "kintsugi/text/character_kinds.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::tasks {
namespace {

using base::Json;

bool strips(char32_t code) {
  return text::is_space(code) || (code >= 0x1C && code <= 0x1F);  // separators, in Python
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t found = text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) return out;
    out += to;
    at = found + from.size();
  }
}

std::string strip(std::string_view text, const std::string&) {
  return std::string(without_trailing_space(without_leading_space(text)));
}
std::string lstrip(std::string_view text, const std::string&) {
  return std::string(without_leading_space(text));
}
// Converts the first character to upper case if it is an ASCII letter, the others to lower case.
std::string capitalize(std::string_view text, const std::string&) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const text::Character c = text::read_character(text.substr(at));
    if (at == 0 && c.code >= 'a' && c.code <= 'z') {
      out += static_cast<char>(c.code - 'a' + 'A');
    } else if (at == 0 || c.size == 0) {
      out += text.substr(at, static_cast<size_t>(std::max(c.size, 1)));
    } else {
      text::append_lowercase(c.code, out);
    }
    at += static_cast<size_t>(std::max(c.size, 1));
  }
  return out;
}
std::string spaces(std::string_view text, const std::string&) {
  return replaced(text, "_", " ");
}
std::string before(std::string_view text, const std::string& mark) {
  return std::string(text.substr(0, text.find(mark)));
}
std::string after(std::string_view text, const std::string& mark) {
  const size_t found = text.find(mark);
  return found == std::string_view::npos ? "" : std::string(text.substr(found + mark.size()));
}
std::string without_last_word(std::string_view text, const std::string&) {
  const size_t space = text.rfind(' ');
  return space == std::string_view::npos ? "" : std::string(text.substr(0, space));
}
std::string last_word(std::string_view text, const std::string&) {
  const size_t space = text.rfind(' ');
  return std::string(space == std::string_view::npos ? text : text.substr(space + 1));
}
// Removes remnants of markup from HellaSwag's sources.
std::string wikihow(std::string_view text, const std::string& none) {
  const std::string titled = replaced(strip(text, none), " [title]", ". ");
  std::string out;
  for (size_t at = 0; at < titled.size();) {
    const size_t open = titled.find('[', at), close = titled.find(']', open), line = titled.find('\n', open);
    if (open == std::string::npos || close == std::string::npos) {
      out += titled.substr(at);
      break;
    }
    out += titled.substr(at, open - at);
    at = close < line ? close + 1 : open + 1;
    if (at == open + 1) out += '[';
  }
  return replaced(out, "  ", " ");
}

// As Python's re.sub(OPEN\s*([^CLOSE]*?)\s*CLOSE, OPEN\1CLOSE): white space inside of a pair of marks.
std::string tightened(std::string_view text, char open, char close) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t begin = text.find(open, at);
    // The text between the marks contains no closing one, but may contain an opening one.
    const size_t end = begin == std::string_view::npos ? begin : text.find(close, begin + 1);
    if (end == std::string_view::npos) return out += text.substr(at);
    out += text.substr(at, begin + 1 - at);
    out += without_trailing_space(without_leading_space(text.substr(begin + 1, end - begin - 1)));
    out += close;
    at = end + 1;
  }
}
// Undoes the tokenization of WikiText, as the harness does.
std::string wikitext(std::string_view text, const std::string&) {
  static constexpr std::pair<std::string_view, std::string_view> kFirst[] = {
      {"s '", "s'"}, {" @-@ ", "-"}, {" @,@ ", ","}, {" @.@ ", "."}, {" : ", ": "},
      {" ; ", "; "}, {" . ", ". "},  {" ! ", "! "},  {" ? ", "? "},  {" , ", ", "}};
  static constexpr std::pair<std::string_view, std::string_view> kLast[] = {
      {"= = = =", "===="}, {"= = =", "==="}, {"= =", "=="},  {" \u00b0 ", "\u00b0"},
      {" \n", "\n"},       {"\n ", "\n"},    {" N ", " 1 "}, {" 's", "'s"}};
  std::string out(text);
  for (const auto& [from, to] : kFirst) out = replaced(out, from, to);
  for (const auto& [open, close] : {std::pair('(', ')'), {'[', ']'}, {'{', '}'}, {'"', '"'}, {'\'', '\''}})
    out = tightened(out, open, close);
  for (const auto& [from, to] : kLast) out = replaced(out, from, to);
  return out;
}

struct FilterRow {
  std::string_view name;
  std::string (*apply)(std::string_view text, const std::string& argument);
  bool argument = false;
};
// All filters.
constexpr std::array<FilterRow, 10> kFilters = {{
    {"strip", strip},
    {"lstrip", lstrip},
    {"capitalize", capitalize},
    {"spaces", spaces},  // in place of underscores
    {"before", before, true},
    {"after", after, true},
    {"without_last_word", without_last_word},
    {"last_word", last_word},
    {"wikihow", wikihow},
    {"wikitext", wikitext},
}};

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> list(1);
  for (const char c : text) c == by ? void(list.emplace_back()) : list.back().push_back(c);
  return list;
}

std::optional<size_t> position_of(std::string_view step) {
  size_t position = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), position);
  return error == std::errc() && end == step.data() + step.size() ? std::optional(position) : std::nullopt;
}

// The value one step below, or nothing.
std::optional<Json> below(const Json& value, const std::string& step) {
  if (const auto position = position_of(step); value.is_list() && position)
    return *position < value.list().size() ? std::optional(value.list()[*position]) : std::nullopt;
  return value.is_object() ? value.find(step) : std::nullopt;
}

}  // namespace

std::string_view without_leading_space(std::string_view text) {
  for (text::Character c; !text.empty(); text.remove_prefix(static_cast<size_t>(c.size)))
    if (c = text::read_character(text); c.size == 0 || !strips(c.code)) break;
  return text;
}

std::string_view without_trailing_space(std::string_view text) {
  for (text::Character c; !text.empty(); text.remove_suffix(static_cast<size_t>(c.size)))
    if (c = text::read_last_character(text); c.size == 0 || !strips(c.code)) break;
  return text;
}

Json value_at(const Json& record, std::string_view path) {
  Json at = record;
  if (path.empty()) return at;
  for (const std::string& step : split(path, '.')) {
    const std::optional<Json> next = below(at, step);
    if (!next && at.is_object()) return at.at(step);  // reports that it is missing
    if (!next) at.refuse(position_of(step) ? "a list with position " + step : "an object with \"" + step + "\"");
    at = *next;
  }
  return at;
}

bool has_value_at(const Json& record, std::string_view path) {
  std::optional<Json> at = record;
  for (const std::string& step : split(path, '.'))
    if (at) at = below(*at, step);
  return at.has_value();
}

Filter parse_filter(const Json& source, std::string_view words) {
  const size_t colon = words.find(':');
  const std::string_view name = words.substr(0, colon);
  const auto row = std::ranges::find(kFilters, name, &FilterRow::name);
  if (row == kFilters.end()) {
    std::string known;
    for (const FilterRow& f : kFilters) known += (known.empty() ? "" : ", ") + std::string(f.name);
    source.fail("unknown filter \"{}\"; there are {}", name, known);
  }
  if (row->argument == (colon == std::string_view::npos))
    source.fail("the filter \"{}\" takes {}", name, row->argument ? "an argument, as after:_" : "no argument");
  return {.row = static_cast<size_t>(row - kFilters.begin()),
          .argument = std::string(colon == std::string_view::npos ? "" : words.substr(colon + 1))};
}

std::string filtered(const Filter& filter, std::string_view text) {
  return kFilters[filter.row].apply(text, filter.argument);
}

Template::Template(const Json& source) {
  const std::string text(source.text());
  parts_.emplace_back();
  for (size_t i = 0; i < text.size(); ++i) {
    const bool twice = i + 1 < text.size() && text[i + 1] == text[i];
    if ((text[i] == '{' || text[i] == '}') && twice) {
      parts_.back().text += text[i++];
      continue;
    }
    if (text[i] == '}') source.fail("the template has \"}}\" without \"{{\"; a brace itself is \"}}}}\"");
    if (text[i] != '{') {
      parts_.back().text += text[i];
      continue;
    }
    const size_t end = text.find('}', i);
    if (end == std::string::npos) source.fail("the template has \"{{\" without \"}}\"; a brace itself is \"{{{{\"");
    const std::vector<std::string> words = split(std::string_view(text).substr(i + 1, end - i - 1), '|');
    Part& part = parts_.back();
    part.field = true;
    part.path = words[0];
    for (size_t w = 1; w < words.size(); ++w) part.filters.push_back(parse_filter(source, words[w]));
    parts_.emplace_back();
    i = end;
  }
}

std::string Template::render(const Json& record) const {
  std::string out;
  for (const Part& part : parts_) {
    out += part.text;
    if (!part.field) continue;
    const Json value = value_at(record, part.path);
    if (!value.is_text() && !value.is_number()) value.refuse("a text");
    std::string text = value.is_text() ? std::string(value.text()) : value.compact();
    for (const Filter& filter : part.filters) text = filtered(filter, text);
    out += text;
  }
  return out;
}

}  // namespace kintsugi::tasks
