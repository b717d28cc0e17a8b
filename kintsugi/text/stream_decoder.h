// Ids to text while they come: a token may end in the midst of a character.
#pragma once

#include <cstdint>
#include <string>

#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

// All that `add` and `flush` return, joined, is what `decode` makes of all ids. A character is returned whole; what is
// held back is only the beginning of a character that the next ids may complete, so bytes that can no longer become
// one are returned as they are. The tokenizer must outlive it.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  std::string add(int32_t id);
  // The beginning of a character that nothing completed, if there is one.
  std::string flush();

 private:
  const Tokenizer* tokenizer_;
  std::string held_;
};

}  // namespace kintsugi::text
