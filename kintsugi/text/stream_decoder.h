// Decodes ids one by one: a token may end in the middle of a character.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// The concatenation of everything that `add` and `flush` return equals `decode` of all ids. Returns whole characters;
// withholds only an incomplete character that later ids may complete, and returns bytes that can no longer become one
// unchanged. The tokenizer must outlive it.
class StreamDecoder {
 public:
  // `before`: ids of the preceding text, which determines whether a word begins with a space.
  explicit StreamDecoder(const Tokenizer& tokenizer, std::span<const int32_t> before = {});

  std::string add(int32_t id);
  // Returns the remaining incomplete character, if any.
  std::string flush();

 private:
  const Tokenizer* tokenizer_;
  std::vector<int32_t> before_;  // the ids before the next, as far as its text depends on them
  std::string text_before_;
  std::string held_;
};

}  // namespace kintsugi::text
