// { "pattern": { "String" or "Regex": ... }, "behavior": ..., "invert": false }; with `invert`, the text between the
// matches is the delimiter.
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/replace_pattern.h"
#include "kintsugi/text/split_behavior.h"
#include "kintsugi/text/word_splitters/rows.h"

namespace kintsugi::text {
namespace {

class Split final : public WordSplitter {
 public:
  explicit Split(const base::Json& part)
      : pattern_(read_pattern(part.at("pattern"))),
        behavior_(read_behavior(part.at("behavior"))),
        invert_(flag(part, "invert", false)) {}

  void split(std::string_view text, Place place, const WordSink& word) const override {
    PieceJoiner joiner(behavior_, text, place, word);
    pattern_.match(text, [&](std::string_view piece, bool is_match) { joiner.add(piece, is_match != invert_); });
    joiner.finish();
  }

 private:
  SplitPattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

}  // namespace

std::unique_ptr<WordSplitter> read_split(const base::Json& part) {
  return std::make_unique<Split>(part);
}

}  // namespace kintsugi::text
