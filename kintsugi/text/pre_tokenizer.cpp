#include "kintsugi/text/pre_tokenizer.h"

#include "kintsugi/text/utf8.h"

namespace kintsugi::text {

PreTokenizer PreTokenizer::gpt2() {
  return PreTokenizer({SplitPattern(kGpt2Pattern, false, "gpt2")});
}

void PreTokenizer::split(std::string_view text, const std::function<void(std::string_view)>& word) const {
  while (!text.empty()) {
    const size_t valid = count_valid(text);
    if (valid > 0) split_valid(text.substr(0, valid), 0, word);
    text.remove_prefix(valid);
    const size_t invalid = count_invalid(text);
    if (invalid > 0) word(text.substr(0, invalid));
    text.remove_prefix(invalid);
  }
}

void PreTokenizer::split_valid(std::string_view text, size_t pattern,
                               const std::function<void(std::string_view)>& word) const {
  if (pattern == patterns_.size()) return word(text);
  if (pattern + 1 == patterns_.size()) return patterns_[pattern].split(text, word);
  patterns_[pattern].split(text, [&](std::string_view piece) { split_valid(piece, pattern + 1, word); });
}

}  // namespace kintsugi::text
