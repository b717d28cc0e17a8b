// What a pre-tokenizer does with the pieces that it distinguishes (Hugging Face's "behavior").
#pragma once

#include <optional>
#include <string_view>

#include "kintsugi/base/json.h"
#include "kintsugi/text/word_splitter.h"

namespace kintsugi::text {

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

SplitBehavior read_behavior(const base::Json& value);

// Takes the pieces of a text in order, delimiters and what lies between, and calls `word` for the result of the
// behavior. An empty delimiter, from a pattern that matches nothing, counts as any other; words are never empty. Call
// `finish` or destroy it after the last piece.
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
  bool holds_ = false;     // there is one, possibly empty
  bool previous_ = false;  // the last piece was a delimiter
};

}  // namespace kintsugi::text
