#include "kintsugi/data/find_safe_cut.h"

#include "kintsugi/text/utf8.h"

namespace kintsugi::data {
namespace {

bool is_white(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

bool ends_word(std::string_view left, char white) {
  const text::Character last = text::read_last_character(left);
  if (last.size == 0) return false;
  return text::is_cut_letter(last.code) || (white == ' ' && text::is_word(last.code));
}

}  // namespace

CutRule cut_rule_of(std::string_view tokenizer_kind) {
  if (tokenizer_kind == "bytes") return CutRule::kByte;
  if (tokenizer_kind == "chars") return CutRule::kCharacter;
  return CutRule::kWord;
}

size_t find_safe_cut(std::string_view text, CutRule rule, const text::WhiteCuts* cuts) {
  if (rule == CutRule::kByte) return text.size();
  if (rule == CutRule::kCharacter) return text.size() - text::count_unfinished(text);
  for (size_t at = text.size(); at-- > 1;) {
    const std::string_view left = text.substr(0, at);
    if (is_white(text[at]) && ends_word(left, text[at]) && (!cuts || cuts->allows(left, text[at]))) return at;
  }
  return 0;
}

}  // namespace kintsugi::data
