// White space separates words, and each punctuation character is a word.
#include "kintsugi/text/character_kinds.h"
#include "kintsugi/text/each_character.h"
#include "kintsugi/text/word_splitters/rows.h"
#include "kintsugi/text/word_splitters/word_cutter.h"

namespace kintsugi::text {
namespace {

class BertPreTokenizer final : public WordSplitter {
 public:
  void split(std::string_view text, Place place, const WordSink& word) const override {
    WordCutter words(text, place, word);
    each_character(text, [&](char32_t code, std::string_view bytes) {
      const size_t at = words.at(bytes);
      const bool mark = is_punctuation(code);
      if (!mark && !is_space(code)) return;
      const size_t behind = at + bytes.size();
      words.cut(at, mark ? at : behind);
      if (mark) words.cut(behind, behind);
    });
    words.finish();
  }
};

}  // namespace

std::unique_ptr<WordSplitter> read_bert_pre_tokenizer(const base::Json&) {
  return std::make_unique<BertPreTokenizer>();
}

}  // namespace kintsugi::text
