// SentencePiece's normalization before segmentation (Kudo and Richardson 2018, section 3.2).
#pragma once

#include <string>
#include <string_view>

#include "kintsugi/text/charsmap.h"
#include "kintsugi/text/place.h"
#include "kintsugi/text/prefix_trie.h"
#include "kintsugi/text/sentencepiece_file.h"

namespace kintsugi::text {

// Represents a space.
constexpr std::string_view kSpaceMark = "\u2581";

// Const use is thread-safe.
class SentencePieceNormalizer {
 public:
  // Keeps user-defined pieces unchanged; their trie and its file must outlive it.
  SentencePieceNormalizer(const SentencePieceFile& file, const PrefixTrie& user_defined, std::string_view where)
      : file_(file), user_defined_(user_defined), map_(file.charsmap, where) {}

  // `text` is valid UTF-8.
  std::string apply(std::string_view text, Place place) const;

 private:
  // The replacement of a prefix of `text`, and the length of the prefix.
  struct Step {
    std::string_view text;
    size_t size;
  };
  Step next(std::string_view text) const;

  const SentencePieceFile& file_;
  const PrefixTrie& user_defined_;
  Charsmap map_;
};

}  // namespace kintsugi::text
