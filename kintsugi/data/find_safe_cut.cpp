#include "kintsugi/data/find_safe_cut.h"

#include "kintsugi/text/utf8.h"

namespace kintsugi::data {
namespace {

bool is_white(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

// Letters of scripts with few or no spaces, or common enough to matter; a letter that is missing here only means that
// the cut falls elsewhere.
bool is_letter(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return (c >= 0xC0 && c <= 0x24F && c != 0xD7 && c != 0xF7) ||           // Latin
         (c >= 0x3B1 && c <= 0x3C9) || (c >= 0x410 && c <= 0x44F) ||      // Greek, Cyrillic
         (c >= 0x5D0 && c <= 0x5EA) || (c >= 0x620 && c <= 0x64A) ||      // Hebrew, Arabic
         (c >= 0x3041 && c <= 0x3096) || (c >= 0x30A1 && c <= 0x30FA) ||  // kana
         (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0xAC00 && c <= 0xD7A3);    // Chinese, Korean
}

bool ends_word(std::string_view left, char white) {
  const text::Character last = text::read_last_character(left);
  if (last.size == 0) return false;
  return is_letter(last.code) || (white == ' ' && text::is_word(last.code));
}

}  // namespace

// For tokenizers that are not of GPT-2's family a cut before white space is exact too, since nothing is added to text
// that continues (Tokenizer::encode_continued), unless the vocabulary has a token of a letter and white space behind
// it.
CutRule cut_rule_of(std::string_view tokenizer_kind) {
  if (tokenizer_kind == "bytes") return CutRule::kByte;
  if (tokenizer_kind == "chars") return CutRule::kCharacter;
  return CutRule::kWord;
}

size_t find_safe_cut(std::string_view text, CutRule rule) {
  if (rule == CutRule::kByte) return text.size();
  if (rule == CutRule::kCharacter) return text.size() - text::count_unfinished(text);
  for (size_t at = text.size(); at-- > 1;) {
    if (is_white(text[at]) && ends_word(text.substr(0, at), text[at])) return at;
  }
  return 0;
}

}  // namespace kintsugi::data
