#include "kintsugi/text/character_kinds.h"

#include <utf8proc.h>

#include <array>
#include <string_view>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/text/code_set.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

enum Kind : uint8_t { kPunctuation, kNumber, kMark, kNonspacing, kControl, kNotWord, kUnnormalized };
constexpr std::string_view kSets[] = {"+punctuation", "+number",  "+mark",        "+nonspacing",
                                      "+control",     "+notword", "+unnormalized"};
constexpr char32_t kAllCodes = 0x110000;

// [code], a bit per kind.
std::vector<uint8_t> read_kinds() {
  std::vector<uint8_t> kinds(kAllCodes);
  for (size_t i = 0; i < std::size(kSets); ++i) {
    const auto set = find_unicode_set(kSets[i]);
    base::require(set.has_value(), "tokenizer", "the tables lack {}", kSets[i]);
    for (const auto& [first, last] : set->ranges())
      for (char32_t c = first; c <= last; ++c) kinds[c] |= static_cast<uint8_t>(1U << i);
  }
  kinds[0] |= 1U << kControl | 1U << kNotWord;
  return kinds;
}

bool is_kind(char32_t code, Kind kind) {
  static const std::vector<uint8_t> kinds = read_kinds();
  return code < kAllCodes && (kinds[code] >> kind & 1) != 0;
}

// Lower-case letters newer than Unicode 14, up to version 17.
struct NewCase {
  char32_t first, last, lower;
};
constexpr NewCase kNewCases[] = {{0x1C89, 0x1C89, 0x1C8A},   {0xA7CB, 0xA7CB, 0x0264}, {0xA7CC, 0xA7CC, 0xA7CD},
                                 {0xA7CE, 0xA7CE, 0xA7CF},   {0xA7D2, 0xA7D2, 0xA7D3}, {0xA7D4, 0xA7D4, 0xA7D5},
                                 {0xA7DA, 0xA7DA, 0xA7DB},   {0xA7DC, 0xA7DC, 0x019B}, {0x10D50, 0x10D65, 0x10D70},
                                 {0x16EA0, 0x16EB8, 0x16EBB}};

char32_t lower_of(char32_t code) {
  if (code >= kNewCases[0].first)
    for (const NewCase& c : kNewCases)
      if (code >= c.first && code <= c.last) return code - c.first + c.lower;
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
}

}  // namespace

bool is_punctuation(char32_t code) {
  return is_kind(code, kPunctuation);
}

bool is_number(char32_t code) {
  return is_kind(code, kNumber);
}

bool is_mark(char32_t code) {
  return is_kind(code, kMark);
}

bool is_nonspacing_mark(char32_t code) {
  return is_kind(code, kNonspacing);
}

bool is_control(char32_t code) {
  return is_kind(code, kControl);
}

bool is_word(char32_t code) {
  return code < kAllCodes && !is_kind(code, kNotWord);
}

bool is_newer_than_forms(char32_t code) {
  return is_kind(code, kUnnormalized);
}

bool is_chinese(char32_t code) {
  // The sixth range begins as in the published code of BERT.
  constexpr char32_t kRanges[][2] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                                     {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  for (const auto& [first, last] : kRanges)
    if (code >= first && code <= last) return true;
  return false;
}

void append_lowercase(char32_t code, std::string& text) {
  if (code < 0x80) {
    text += static_cast<char>(code >= 'A' && code <= 'Z' ? code + 'a' - 'A' : code);
  } else if (code == 0x130) {
    text += "i\u0307";
  } else {
    append_character(lower_of(code), text);
  }
}

}  // namespace kintsugi::text
