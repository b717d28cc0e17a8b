// Runs of word characters are words, and so are runs of what is neither these nor white space.
#include "kintsugi/text/each_character.h"
#include "kintsugi/text/word_splitters/rows.h"

namespace kintsugi::text {
namespace {

class Whitespace final : public WordSplitter {
 public:
  void split(std::string_view text, Place place, const WordSink& word) const override {
    size_t begin = 0;
    bool in_word = false;
    const auto end_word = [&](size_t at) {
      if (at > begin) word(text.substr(begin, at - begin), begin == 0 ? place : Place::kInside);
    };
    each_character(text, [&](char32_t code, std::string_view bytes) {
      const auto at = static_cast<size_t>(bytes.data() - text.data());
      const bool space = is_space(code), letter = !space && is_word(code);
      if (space || letter != in_word) {
        end_word(at);
        begin = space ? at + bytes.size() : at;
      }
      in_word = letter;
    });
    end_word(text.size());
  }
};

}  // namespace

std::unique_ptr<WordSplitter> read_whitespace(const base::Json&) {
  return std::make_unique<Whitespace>();
}

}  // namespace kintsugi::text
