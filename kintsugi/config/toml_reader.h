// TOML as plain data, with line numbers, in text order. The only code that depends on the TOML library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::config {

// A value as written.
struct Raw {
  // too_large: `text` holds a number of more than 64 bits.
  enum class Type { boolean, integer, number, text, list, table, too_large, other };
  Type type = Type::other;
  bool boolean = false;
  int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<Raw> items;          // list or table
  std::vector<std::string> names;  // table, one per item
  int line = 0;                    // 1-based

  std::string shown() const;           // for messages: `"abc"`, `12`, or "" if too long
  std::string_view type_name() const;  // "a text", "an integer", ...
};

// A line of a file: a key of a section, or, if `key` is empty, the section itself and the value assigned to it.
struct Entry {
  std::string section;
  std::string key;
  Raw value;
  int line = 0;
};

// Throws UserError "[config] `name`:LINE: ..." if the text is not TOML. A top-level name that is not a table counts as
// a section.
std::vector<Entry> read_toml(std::string_view text, std::string_view name);

// Parses one value: "12", "[1, 2]", "\"text\"". Returns false if it is not a TOML value, with type `too_large` or
// `other`.
bool read_toml_value(std::string_view text, Raw& value);

}  // namespace kintsugi::config
