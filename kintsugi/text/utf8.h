// UTF-8 as defined by RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kintsugi::text {

struct Character {
  char32_t code = 0;
  int size = 0;  // in bytes, 1 to 4; 0 if no valid character begins here
};

// The first character of `text`.
Character read_character(std::string_view text);
// The same for valid, nonempty `text`: checks nothing.
inline Character read_valid_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text.data()[i])); };
  const auto rest = [&](size_t i) { return byte(i) & 0x3F; };
  const char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | rest(1), 2};
  if (first < 0xF0) return {(first & 0xF) << 12 | rest(1) << 6 | rest(2), 3};
  return {(first & 7) << 18 | rest(1) << 12 | rest(2) << 6 | rest(3), 4};
}
// The last character of `text`.
Character read_last_character(std::string_view text);

// The number of bytes before the first at which no valid character begins.
size_t count_valid(std::string_view text);
// The number of bytes before the first at which a valid character begins.
size_t count_invalid(std::string_view text);
// The number of bytes at the end, 0 to 3, that begin an incomplete character.
size_t count_unfinished(std::string_view text);

void append_character(char32_t code, std::string& text);
// "U+0041 \"A\"", for messages; a control character without the quotes.
std::string describe_character(char32_t code);

// Unicode's White_Space, and the word characters of regular expressions (letters, marks, digits, connectors, joiners).
bool is_space(char32_t code);
bool is_word(char32_t code);

}  // namespace kintsugi::text
