// What a pre-tokenizer does with the pieces that it tells apart (Hugging Face's "behavior").
#pragma once

#include <optional>
#include <string_view>

#include "kintsugi/base/json.h"
#include "kintsugi/text/word_splitter.h"

namespace kintsugi::text {

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

SplitBehavior read_behavior(const base::Json& value);

// Takes the pieces of a text in order, delimiters and what lies between, and calls `word` for what the behavior makes
// of them. An empty delimiter, as of a pattern that matches nothing, is one like any other; no word is empty. All
// pieces have been taken when it is destroyed, or `finish` is called.
class PieceJoiner {
 public:
  PieceJoiner(SplitBehavior behavior, std::string_view text, Place place, const WordSink& word)
      : behavior_(behavior), text_(text), place_(place), word_(word) {}

  void add(std::string_view piece, bool is_delimiter);
  void finish() { flush(); }

 private:
  void flush();
  void extend(std::string_view piece) { held_ = {held_.data(), held_.size() + piece.size()}; }

  SplitBehavior behavior_;
  std::string_view text_;
  Place place_;
  const WordSink& word_;
  std::string_view held_;  // a piece that later ones may join
  bool holds_ = false;     // there is one, which may be empty
  bool previous_ = false;  // the last piece was a delimiter
};

}  // namespace kintsugi::text
