// The first step of byte-level BPE: splits text into words; merges never cross word boundaries.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "kintsugi/text/split_pattern.h"

namespace kintsugi::text {

// Applies patterns in sequence, each to the pieces of the previous one. Patterns do not match invalid UTF-8: each
// maximal run of it is a word, and the text on either side is split separately. Const use is thread-safe.
class PreTokenizer {
 public:
  static PreTokenizer gpt2();

  explicit PreTokenizer(std::vector<SplitPattern> patterns) : patterns_(std::move(patterns)) {}

  // Calls `word` for the words of `text` in order; together they are `text`.
  void split(std::string_view text, const std::function<void(std::string_view)>& word) const;

 private:
  void split_valid(std::string_view text, size_t pattern, const std::function<void(std::string_view)>& word) const;

  std::vector<SplitPattern> patterns_;
};

}  // namespace kintsugi::text
