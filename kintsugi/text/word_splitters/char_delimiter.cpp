// { "delimiter": "x" }: a character separates words.
#include "kintsugi/text/each_character.h"
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/word_splitters/rows.h"
#include "kintsugi/text/word_splitters/word_cutter.h"

namespace kintsugi::text {
namespace {

class CharDelimiter final : public WordSplitter {
 public:
  explicit CharDelimiter(const base::Json& part) : delimiter_(one_character(part.at("delimiter"))) {}

  void split(std::string_view text, Place place, const WordSink& word) const override {
    WordCutter words(text, place, word);
    each_character(text, [&](char32_t code, std::string_view bytes) {
      const size_t at = words.at(bytes);
      if (code == delimiter_) words.cut(at, at + bytes.size());
    });
    words.finish();
  }

 private:
  char32_t delimiter_;
};

}  // namespace

std::unique_ptr<WordSplitter> read_char_delimiter(const base::Json& part) {
  return std::make_unique<CharDelimiter>(part);
}

}  // namespace kintsugi::text
