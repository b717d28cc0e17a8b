// White space separates words, and each mark of punctuation is a word.
#include "kintsugi/text/character_kinds.h"
#include "kintsugi/text/each_character.h"
#include "kintsugi/text/word_splitters/rows.h"

namespace kintsugi::text {
namespace {

class BertPreTokenizer final : public WordSplitter {
 public:
  void split(std::string_view text, Place place, const WordSink& word) const override {
    size_t begin = 0;
    const auto end_word = [&](size_t at) {
      if (at > begin) word(text.substr(begin, at - begin), begin == 0 ? place : Place::kInside);
    };
    each_character(text, [&](char32_t code, std::string_view bytes) {
      const auto at = static_cast<size_t>(bytes.data() - text.data());
      const bool mark = is_punctuation(code);
      if (!mark && !is_space(code)) return;
      end_word(at);
      begin = mark ? at : at + bytes.size();
      if (!mark) return;
      end_word(at + bytes.size());
      begin = at + bytes.size();
    });
    end_word(text.size());
  }
};

}  // namespace

std::unique_ptr<WordSplitter> read_bert_pre_tokenizer(const base::Json&) {
  return std::make_unique<BertPreTokenizer>();
}

}  // namespace kintsugi::text
