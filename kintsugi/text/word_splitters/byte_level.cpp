// { "add_prefix_space": true, "use_regex": true }: GPT-2's words, spelled in the characters that represent bytes.
#include <optional>

#include "kintsugi/text/byte_symbols.h"
#include "kintsugi/text/json_part.h"
#include "kintsugi/text/split_pattern.h"
#include "kintsugi/text/word_splitters/rows.h"

namespace kintsugi::text {
namespace {

class ByteLevel final : public WordSplitter {
 public:
  explicit ByteLevel(const base::Json& part) : prefix_(flag(part, "add_prefix_space", true)) {
    if (flag(part, "use_regex", true)) pattern_.emplace(kGpt2Pattern, false, "ByteLevel");
  }

  void split(std::string_view text, Place place, const WordSink& word) const override {
    std::string prefixed;
    if (prefix_ && !text.starts_with(' ') && place != Place::kContinued) {
      prefixed.append(" ").append(text);
      text = prefixed;
    }
    if (!pattern_) return word(spell_bytes(text), place);
    pattern_->split(text, [&](std::string_view piece) { word(spell_bytes(piece), place_of(piece, text, place)); });
  }
  bool spells_bytes() const override { return true; }

 private:
  bool prefix_;
  std::optional<SplitPattern> pattern_;
};

}  // namespace

std::unique_ptr<WordSplitter> read_byte_level_splitter(const base::Json& part) {
  return std::make_unique<ByteLevel>(part);
}

}  // namespace kintsugi::text
