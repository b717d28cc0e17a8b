// { "behavior": "Isolated" }: each punctuation character is a delimiter.
#include "kintsugi/text/character_kinds.h"
#include "kintsugi/text/each_character.h"
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/split_behavior.h"
#include "kintsugi/text/word_splitters/rows.h"

namespace kintsugi::text {
namespace {

class Punctuation final : public WordSplitter {
 public:
  explicit Punctuation(const base::Json& part) {
    if (const auto behavior = find_part(part, "behavior")) behavior_ = read_behavior(*behavior);
  }

  void split(std::string_view text, Place place, const WordSink& word) const override {
    PieceJoiner joiner(behavior_, text, place, word);
    size_t begin = 0;
    each_character(text, [&](char32_t code, std::string_view bytes) {
      if (!is_punctuation(code)) return;
      const auto at = static_cast<size_t>(bytes.data() - text.data());
      if (at > begin) joiner.add(text.substr(begin, at - begin), false);
      joiner.add(bytes, true);
      begin = at + bytes.size();
    });
    if (begin < text.size()) joiner.add(text.substr(begin), false);
    joiner.finish();
  }

 private:
  SplitBehavior behavior_ = SplitBehavior::kIsolated;
};

}  // namespace

std::unique_ptr<WordSplitter> read_punctuation(const base::Json& part) {
  return std::make_unique<Punctuation>(part);
}

}  // namespace kintsugi::text
