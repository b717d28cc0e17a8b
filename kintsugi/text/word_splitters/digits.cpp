// { "individual_digits": false }: numbers are words, or each digit is one.
#include "kintsugi/text/character_kinds.h"
#include "kintsugi/text/each_character.h"
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/word_splitters/rows.h"

namespace kintsugi::text {
namespace {

class Digits final : public WordSplitter {
 public:
  explicit Digits(const base::Json& part) : each_(flag(part, "individual_digits", false)) {}

  void split(std::string_view text, Place place, const WordSink& word) const override {
    size_t begin = 0;
    bool in_number = false;
    each_character(text, [&](char32_t code, std::string_view bytes) {
      const auto at = static_cast<size_t>(bytes.data() - text.data());
      const bool number = is_number(code);
      if (at > begin && (number != in_number || (number && each_))) {
        word(text.substr(begin, at - begin), begin == 0 ? place : Place::kInside);
        begin = at;
      }
      in_number = number;
    });
    if (begin < text.size()) word(text.substr(begin), begin == 0 ? place : Place::kInside);
  }

 private:
  bool each_;
};

}  // namespace

std::unique_ptr<WordSplitter> read_digits(const base::Json& part) {
  return std::make_unique<Digits>(part);
}

}  // namespace kintsugi::text
