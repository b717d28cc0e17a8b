// Character classes for normalizers and pre-tokenizers; white space and word characters are in utf8.h. They match
// Hugging Face's tokenizers 0.23, whose tables come from several versions of Unicode: numbers and lower case from 17,
// word characters from 16 (as the properties of patterns), punctuation, marks and normal forms from versions before 13.
#pragma once

#include <string>

namespace kintsugi::text {

bool is_punctuation(char32_t code);       // Unicode's P, and all ASCII punctuation
bool is_number(char32_t code);            // N: digits, letters as numbers, others
bool is_mark(char32_t code);              // M: all combining marks
bool is_nonspacing_mark(char32_t code);   // Mn
bool is_control(char32_t code);           // Cc, Cf, Co; except tab and newlines
bool is_chinese(char32_t code);           // ideographs that BERT treats as words
bool is_newer_than_forms(char32_t code);  // normalization leaves it unchanged and composes nothing with it

// Appends the character in lower case, which is two characters for U+0130.
void append_lowercase(char32_t code, std::string& text);

}  // namespace kintsugi::text
