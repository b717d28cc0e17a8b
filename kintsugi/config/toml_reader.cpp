#include "kintsugi/config/toml_reader.h"

#include <fmt/format.h>

// If the library is header-only, its assertions would terminate on input as short as "[$]"; without them it reports an
// error, as its compiled form in distributions does.
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/memory.h"

namespace kintsugi::config {
namespace {

using Position = std::pair<unsigned, unsigned>;

Position position(const toml::source_region& source) {
  return {source.begin.line, source.begin.column};
}

Raw raw_of(const toml::node& node);

// The rows of a table in text order; the library sorts them by name.
Raw raw_of_table(const toml::table& table) {
  std::vector<std::pair<Position, std::pair<std::string, const toml::node*>>> rows;
  for (auto&& [key, node] : table) rows.emplace_back(position(key.source()), std::pair(std::string(key.str()), &node));
  std::ranges::sort(rows);
  Raw raw;
  raw.type = Raw::Type::table;
  for (const auto& [at, row] : rows) {
    raw.names.push_back(row.first);
    raw.items.push_back(raw_of(*row.second));
    raw.items.back().line = static_cast<int>(at.first);
  }
  return raw;
}

Raw raw_of(const toml::node& node) {
  Raw raw;
  if (const auto* boolean = node.as_boolean()) {
    raw.type = Raw::Type::boolean;
    raw.boolean = boolean->get();
  } else if (const auto* integer = node.as_integer()) {
    raw.type = Raw::Type::integer;
    raw.integer = integer->get();
  } else if (const auto* number = node.as_floating_point()) {
    raw.type = Raw::Type::number;
    raw.number = number->get();
  } else if (const auto* text = node.as_string()) {
    raw.type = Raw::Type::text;
    raw.text = text->get();
  } else if (const auto* list = node.as_array()) {
    raw.type = Raw::Type::list;
    for (const toml::node& item : *list) raw.items.push_back(raw_of(item));
  } else if (const auto* table = node.as_table()) {
    raw = raw_of_table(*table);
  }
  raw.line = static_cast<int>(node.source().begin.line);
  return raw;
}

std::string_view line_of(std::string_view text, unsigned line) {
  for (unsigned i = 1; i < line; ++i) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

// Whether the library read a number that does not fit in 64 bits.
bool is_too_large(const toml::parse_error& error) {
  const std::string_view why = error.description();
  return why.find("is not representable in 64 bits") != why.npos ||
         (why.find("floating-point") != why.npos && why.find("could not be interpreted as a value") != why.npos);
}

[[noreturn]] void not_toml(const toml::parse_error& error, std::string_view text, std::string_view name) {
  std::string why(error.description());
  if (why.starts_with("Error while parsing ")) why = why.substr(20);
  if (!why.empty()) why[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(why[0])));
  const auto [line, column] = position(error.source());
  const std::string shown = base::one_line(line_of(text, line), 60);
  if (is_too_large(error))
    throw base::UserError("config",
                          "{}:{}: `{}` has a number of more than 64 bits: integers end at {}, others at {:.1e}", name,
                          line, shown, std::numeric_limits<int64_t>::max(), std::numeric_limits<double>::max());
  // The most common mistake: dtype = bf16.
  const bool bare_word = why.find("could not determine value type") != std::string::npos;
  throw base::UserError("config", "{}:{}: {}is not TOML: {} (column {}){}", name, line,
                        shown.empty() ? "this" : fmt::format("`{}` ", shown), base::one_line(why), column,
                        bare_word ? "; a text needs quotes" : "");
}

}  // namespace

std::string Raw::shown() const {
  switch (type) {
    case Type::boolean:
      return boolean ? "true" : "false";
    case Type::integer:
      return fmt::format("{}", integer);
    case Type::number:
      return fmt::format("{}", number);
    case Type::text:
      return fmt::format("\"{}\"", base::one_line(text, 60));
    case Type::too_large:
      return base::one_line(text, 60);
    default:
      return "";
  }
}

std::string_view Raw::type_name() const {
  switch (type) {
    case Type::boolean:
      return "a truth value";
    case Type::integer:
      return "an integer";
    case Type::number:
      return "a floating-point number";
    case Type::text:
      return "a text";
    case Type::list:
      return "a list";
    case Type::table:
      return "a table";
    case Type::too_large:
      return "a number of more than 64 bits";
    default:
      return "a date or time";
  }
}

std::vector<Entry> read_toml(std::string_view text, std::string_view name) {
  // The library terminates the process when out of memory.
  if (!base::can_allocate((1 << 20) + 64 * text.size())) throw std::bad_alloc();
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    not_toml(error, text, name);
  }
  std::vector<std::pair<Position, Entry>> found;
  for (auto&& [section, node] : root) {
    const Position at = position(section.source());
    found.push_back({at, {std::string(section.str()), "", raw_of(node), static_cast<int>(at.first)}});
    const toml::table* table = node.as_table();
    if (!table) continue;
    for (auto&& [key, value] : *table) {
      const Position where = position(key.source());
      found.push_back(
          {where, {std::string(section.str()), std::string(key.str()), raw_of(value), static_cast<int>(where.first)}});
    }
  }
  // Stable, so that the section of `train.steps = 1` precedes its key.
  std::ranges::stable_sort(found, {}, [](const auto& entry) { return entry.first; });
  std::vector<Entry> entries;
  for (auto& [at, entry] : found) entries.push_back(std::move(entry));
  return entries;
}

bool read_toml_value(std::string_view text, Raw& value) {
  try {
    const toml::table root = toml::parse(fmt::format("value = {}\n", text));
    const toml::node* node = root.get("value");
    if (!node || root.size() != 1) return false;
    value = raw_of(*node);
    return true;
  } catch (const toml::parse_error& error) {
    value = Raw();
    if (is_too_large(error)) value.type = Raw::Type::too_large;
    return false;
  }
}

}  // namespace kintsugi::config
