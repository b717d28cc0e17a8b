#include "kintsugi/text/split_behavior.h"

namespace kintsugi::text {

SplitBehavior read_behavior(const base::Json& value) {
  if (value.text() == "Removed") return SplitBehavior::kRemoved;
  if (value.text() == "Isolated") return SplitBehavior::kIsolated;
  if (value.text() == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (value.text() == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (value.text() == "Contiguous") return SplitBehavior::kContiguous;
  value.refuse("\"Removed\", \"Isolated\", \"MergedWithPrevious\", \"MergedWithNext\" or \"Contiguous\"");
}

void PieceJoiner::flush() {
  if (!held_.empty()) word_(held_, place_of(held_, text_, place_));
  held_ = {};
  holds_ = false;
}

void PieceJoiner::add(std::string_view piece, bool is_delimiter) {
  bool joins = false;
  switch (behavior_) {
    case SplitBehavior::kRemoved:
      flush();
      if (is_delimiter) return;
      break;
    case SplitBehavior::kIsolated:
      break;
    case SplitBehavior::kMergedWithPrevious:
      joins = is_delimiter && !previous_;
      break;
    // A delimiter is held for the text after it; another delimiter does not count as such.
    case SplitBehavior::kMergedWithNext:
      joins = previous_ && !is_delimiter;
      break;
    case SplitBehavior::kContiguous:
      joins = is_delimiter == previous_;
      break;
  }
  previous_ = is_delimiter;
  if (joins && holds_) return extend(piece);
  flush();
  held_ = piece;
  holds_ = true;
}

}  // namespace kintsugi::text
