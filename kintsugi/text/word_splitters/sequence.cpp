// { "pretokenizers": [...] }: each splits the words of the previous one.
#include <vector>

#include "kintsugi/text/word_splitters/rows.h"

namespace kintsugi::text {
namespace {

class SplitterSequence final : public WordSplitter {
 public:
  explicit SplitterSequence(const base::Json& list) {
    for (const base::Json& step : list.list()) steps_.push_back(read_word_splitter(step));
  }
  void split(std::string_view text, Place place, const WordSink& word) const override { split(0, text, place, word); }
  bool spells_bytes() const override {
    for (const auto& step : steps_)
      if (step->spells_bytes()) return true;
    return false;
  }

 private:
  void split(size_t step, std::string_view text, Place place, const WordSink& word) const {
    if (step == steps_.size()) return word(text, place);
    steps_[step]->split(text, place, [&, step](std::string_view piece, Place at) { split(step + 1, piece, at, word); });
  }

  std::vector<std::unique_ptr<WordSplitter>> steps_;
};

}  // namespace

std::unique_ptr<WordSplitter> read_splitter_sequence(const base::Json& part) {
  return std::make_unique<SplitterSequence>(part.at("pretokenizers"));
}

}  // namespace kintsugi::text
