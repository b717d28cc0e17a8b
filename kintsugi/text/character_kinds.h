// Kinds of characters that normalizers and pre-tokenizers ask for; white space and word characters are in utf8.h. They
// are those of Hugging Face's tokenizers 0.23, whose tables are of several versions of Unicode: numbers and lower case
// of 17, word characters of 16 (as the properties of patterns), punctuation, marks and normal forms of versions
// before 13.
#pragma once

#include <string>

namespace kintsugi::text {

bool is_punctuation(char32_t code);       // Unicode's P, and all of ASCII's
bool is_number(char32_t code);            // N: digits, letters as numbers, others
bool is_mark(char32_t code);              // M: all that combines
bool is_nonspacing_mark(char32_t code);   // Mn
bool is_control(char32_t code);           // Cc, Cf, Co; not tab and newlines
bool is_chinese(char32_t code);           // the ideographs that BERT takes as words
bool is_newer_than_forms(char32_t code);  // the normal forms leave it as it is, and join nothing to it

// Appends the character in lower case, which for U+0130 is two.
void append_lowercase(char32_t code, std::string& text);

}  // namespace kintsugi::text
