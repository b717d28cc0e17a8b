// The step of byte-level BPE before merging: cuts text into words, across which nothing is ever merged.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "kintsugi/text/split_pattern.h"

namespace kintsugi::text {

// Patterns applied one after another, each to the pieces of the previous one. Bytes that are not valid UTF-8 are not
// matched by patterns: a longest run of them is a word, and the text on either side of it is split separately. Const
// use is safe from several threads at once.
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
