// White space separates words.
#include "kintsugi/text/each_character.h"
#include "kintsugi/text/word_splitters/rows.h"

namespace kintsugi::text {
namespace {

class WhitespaceSplit final : public WordSplitter {
 public:
  void split(std::string_view text, Place place, const WordSink& word) const override {
    size_t begin = 0;
    const auto end_word = [&](size_t at) {
      if (at > begin) word(text.substr(begin, at - begin), begin == 0 ? place : Place::kInside);
    };
    each_character(text, [&](char32_t code, std::string_view bytes) {
      const auto at = static_cast<size_t>(bytes.data() - text.data());
      if (!is_space(code)) return;
      end_word(at);
      begin = at + bytes.size();
    });
    end_word(text.size());
  }
};

}  // namespace

std::unique_ptr<WordSplitter> read_whitespace_split(const base::Json&) {
  return std::make_unique<WhitespaceSplit>();
}

}  // namespace kintsugi::text
