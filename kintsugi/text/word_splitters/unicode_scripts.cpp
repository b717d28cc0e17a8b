// A word ends where the script changes. Kana count as Han; characters without a script, such as a space, do not end a
// word, and are dropped before the first character that has one (as in Hugging Face's tokenizers).
#include <algorithm>
#include <optional>

#include "kintsugi/text/each_character.h"
#include "kintsugi/text/script_table.h"
#include "kintsugi/text/word_splitters/rows.h"
#include "kintsugi/text/word_splitters/word_cutter.h"

namespace kintsugi::text {
namespace {

std::optional<int16_t> script_of(char32_t code) {
  const ScriptRange* end = kScriptRanges + kNumScriptRanges;
  const ScriptRange* range =
      std::upper_bound(kScriptRanges, end, code, [](char32_t c, const ScriptRange& r) { return c <= r.last; });
  if (range == end || code < range->first) return std::nullopt;
  return range->script;
}

class UnicodeScripts final : public WordSplitter {
 public:
  void split(std::string_view text, Place place, const WordSink& word) const override {
    WordCutter words(text, place, word);
    std::optional<int16_t> last;
    each_character(text, [&](char32_t code, std::string_view bytes) {
      const auto script = script_of(code);
      if (!script) return;
      const size_t at = words.at(bytes);
      if (last != script) words.cut(last ? at : 0, at);
      last = script;
    });
    if (last) words.finish();
  }
};

}  // namespace

std::unique_ptr<WordSplitter> read_unicode_scripts(const base::Json&) {
  return std::make_unique<UnicodeScripts>();
}

}  // namespace kintsugi::text
