// Decodes ids one by one: a token may end in the middle of a character.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// The concatenation of all that `add` and `flush` return is what `decode` gives for all ids. A character is returned
// whole; only the beginning of a character that the next ids may complete is held back, so bytes that can no longer
// become one are returned as they are. The tokenizer must outlive it.
class StreamDecoder {
 public:
  // `before`: ids whose text stands before what comes; it decides whether a word begins with a space.
  explicit StreamDecoder(const Tokenizer& tokenizer, std::span<const int32_t> before = {});

  std::string add(int32_t id);
  // The beginning of a character that was not completed, if there is one.
  std::string flush();

 private:
  const Tokenizer* tokenizer_;
  std::vector<int32_t> before_;  // the ids before the next, as far as its text depends on them
  std::string text_before_;
  std::string held_;
};

}  // namespace kintsugi::text
