// TOML text as plain data, with lines, in the order of the text. No other code depends on the TOML library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::config {

// A value as it was written.
struct Raw {
  // too_large: `text` holds a number of more than 64 bits.
  enum class Type { boolean, integer, number, text, list, table, too_large, other };
  Type type = Type::other;
  bool boolean = false;
  int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<Raw> items;          // of a list, or of a table
  std::vector<std::string> names;  // of a table, one per item
  int line = 0;                    // from 1

  std::string shown() const;           // for messages: `"abc"`, `12`, or "" for what is too long for them
  std::string_view type_name() const;  // "a text", "an integer", ...
};

// One line of a file: a key of a section, or, if `key` is empty, the section itself with the value it was given.
struct Entry {
  std::string section;
  std::string key;
  Raw value;
  int line = 0;
};

// UserError "[config] `name`:LINE: ..." if the text is no TOML. A name at the top that is no table is a section too.
std::vector<Entry> read_toml(std::string_view text, std::string_view name);

// One value: "12", "[1, 2]", "\"text\"". False if it is no TOML value, with the type `too_large` or `other`.
bool read_toml_value(std::string_view text, Raw& value);

}  // namespace kintsugi::config
