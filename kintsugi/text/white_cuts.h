// Finds cuts before white space such that the parts of a text, encoded in sequence (Tokenizer::encode_continued for the
// second), produce the ids of the whole.
#pragma once

#include <array>
#include <string_view>

#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// Cuts after a letter, and before a space after any word character, are exact unless a token, an added token, or a
// match of a pattern may contain both. Derived from the tokenizer's definition (to_json).
class WhiteCuts {
 public:
  explicit WhiteCuts(const Tokenizer& tokenizer);

  // Whether a text may be cut between `left`, which ends with a character as above, and `white`, one of " \n\t\r".
  bool allows(std::string_view left, char white) const {
    return allowed_[static_cast<unsigned char>(left.back())][index_of(white)];
  }

  static constexpr std::string_view kWhite = " \n\t\r";

 private:
  static size_t index_of(char white) { return kWhite.find(white); }
  void refuse_all(char white);
  void refuse_spanned(std::string_view token);

  std::array<std::array<bool, 4>, 256> allowed_{};  // [last byte of the left][white space]
};

// The letters before which white space ends words in the patterns of published tokenizers.
bool is_cut_letter(char32_t code);

}  // namespace kintsugi::text
