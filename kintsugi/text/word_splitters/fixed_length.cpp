// { "length": 5 }: words of that many characters.
#include "kintsugi/text/each_character.h"
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/word_splitters/rows.h"
#include "kintsugi/text/word_splitters/word_cutter.h"

namespace kintsugi::text {
namespace {

class FixedLength final : public WordSplitter {
 public:
  explicit FixedLength(const base::Json& part) {
    if (const auto length = find_part(part, "length")) length_ = length->whole(1);
  }

  void split(std::string_view text, Place place, const WordSink& word) const override {
    WordCutter words(text, place, word);
    int64_t count = 0;
    each_character(text, [&](char32_t, std::string_view bytes) {
      if (count == length_) {
        words.cut(words.at(bytes), words.at(bytes));
        count = 0;
      }
      ++count;
    });
    words.finish();
  }

 private:
  int64_t length_ = 5;
};

}  // namespace

std::unique_ptr<WordSplitter> read_fixed_length(const base::Json& part) {
  return std::make_unique<FixedLength>(part);
}

}  // namespace kintsugi::text
