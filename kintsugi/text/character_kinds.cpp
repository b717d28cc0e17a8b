#include "kintsugi/text/character_kinds.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "kintsugi/text/utf8.h"

namespace kintsugi::text {
namespace {

utf8proc_category_t category_of(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

// Categories that Unicode has changed since version 8, by which tokenizers were trained and are run elsewhere: of
// U+166D in 12, U+1734 in 14, U+1885 and U+1886 in 9, U+0C04 and U+A9BD in between.
constexpr char32_t kPunctuationThen = 0x166D, kNonspacingThen = 0x1734;
constexpr char32_t kNonspacingNow[] = {0x0C04, 0x1885, 0x1886, 0xA9BD};

}  // namespace

bool is_punctuation(char32_t code) {
  if (code < 0x80) {
    return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') || (code >= '[' && code <= '`') ||
           (code >= '{' && code <= '~');
  }
  const auto category = category_of(code);
  return (category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO) || code == kPunctuationThen;
}

bool is_number(char32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  const auto category = category_of(code);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool is_mark(char32_t code) {
  if (code < 0x300) return false;
  const auto category = category_of(code);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(char32_t code) {
  if (code < 0x300) return false;
  if (category_of(code) != UTF8PROC_CATEGORY_MN) return code == kNonspacingThen;
  return std::find(std::begin(kNonspacingNow), std::end(kNonspacingNow), code) == std::end(kNonspacingNow);
}

bool is_control(char32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return false;
  if (code < 0x80) return code < 0x20 || code == 0x7F;
  const auto category = category_of(code);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
}

bool is_chinese(char32_t code) {
  // The sixth range begins where the published code of BERT has it.
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
    append_character(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))), text);
  }
}

}  // namespace kintsugi::text
