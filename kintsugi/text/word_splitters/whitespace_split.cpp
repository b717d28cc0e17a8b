// White space separates words.
#include "kintsugi/text/each_character.h"
#include "kintsugi/text/word_splitters/rows.h"
#include "kintsugi/text/word_splitters/word_cutter.h"

namespace kintsugi::text {
namespace {

class WhitespaceSplit final : public WordSplitter {
 public:
  void split(std::string_view text, Place place, const WordSink& word) const override {
    WordCutter words(text, place, word);
    each_character(text, [&](char32_t code, std::string_view bytes) {
      const size_t at = words.at(bytes);
      if (is_space(code)) words.cut(at, at + bytes.size());
    });
    words.finish();
  }
};

}  // namespace

std::unique_ptr<WordSplitter> read_whitespace_split(const base::Json&) {
  return std::make_unique<WhitespaceSplit>();
}

}  // namespace kintsugi::text
