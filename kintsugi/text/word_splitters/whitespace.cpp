// Words are runs of word characters, and runs of other characters except white space.
#include "kintsugi/text/each_character.h"
#include "kintsugi/text/word_splitters/rows.h"
#include "kintsugi/text/word_splitters/word_cutter.h"

namespace kintsugi::text {
namespace {

class Whitespace final : public WordSplitter {
 public:
  void split(std::string_view text, Place place, const WordSink& word) const override {
    WordCutter words(text, place, word);
    bool in_word = false;
    each_character(text, [&](char32_t code, std::string_view bytes) {
      const size_t at = words.at(bytes);
      const bool space = is_space(code), letter = !space && is_word(code);
      if (space || letter != in_word) words.cut(at, space ? at + bytes.size() : at);
      in_word = letter;
    });
    words.finish();
  }
};

}  // namespace

std::unique_ptr<WordSplitter> read_whitespace(const base::Json&) {
  return std::make_unique<Whitespace>();
}

}  // namespace kintsugi::text
