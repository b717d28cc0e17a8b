// UTF-8 as defined by RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kintsugi::text {

struct Character {
  char32_t code = 0;
  int size = 0;  // bytes, 1 to 4; 0 if no valid character begins
};

// The character at the front of `text`.
Character read_character(std::string_view text);
// The character at the end of `text`.
Character read_last_character(std::string_view text);

// The number of bytes before the first one at which no valid character begins.
size_t count_valid(std::string_view text);
// The number of bytes before the first one at which a valid character begins.
size_t count_invalid(std::string_view text);
// The number of bytes at the end, 0 to 3, that begin a character which more bytes may complete.
size_t count_unfinished(std::string_view text);

void append_character(char32_t code, std::string& text);
// "U+0041 \"A\"", for messages; a control character without the quotes.
std::string describe_character(char32_t code);

// Unicode's White_Space, and what a regular expression calls a word character (letters, marks, digits, connectors,
// joiners).
bool is_space(char32_t code);
bool is_word(char32_t code);

}  // namespace kintsugi::text
