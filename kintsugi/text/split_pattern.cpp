#include "kintsugi/text/split_pattern.h"

#include <optional>

#include "kintsugi/text/pattern_engine.h"
#include "kintsugi/text/utf8.h"

namespace kintsugi::text {

// The runs are possessive: that changes no match and avoids backtracking.
const std::string_view kGpt2Pattern = R"('(?:s|t|re|ve|m|ll|d)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s+(?!\S)|\s++)";

SplitPattern::SplitPattern(std::string_view pattern, bool literal, std::string_view where) {
  if (literal) {
    if (!pattern.empty()) engine_ = compile_literal(pattern, where);
    return;
  }
  engine_ = compile_common(pattern, where);
  if (!engine_) engine_ = compile_oniguruma(pattern, where);
}

template <typename F>
void SplitPattern::each(std::string_view text, F&& piece) const {
  if (text.empty()) return;
  if (!engine_) return piece(text, false);
  const auto finder = engine_->finder(text);
  PatternFinder::Match match;
  size_t done = 0, from = 0;
  std::optional<size_t> last_end;  // of a match
  while (from <= text.size() && finder->find(from, match)) {
    if (match.begin == match.end && last_end == match.end) {  // an empty match directly after another does not count
      from += from < text.size() ? read_valid_character(text.substr(from)).size : 1;
      continue;
    }
    if (match.begin > done) piece(text.substr(done, match.begin - done), false);
    piece(text.substr(match.begin, match.end - match.begin), true);
    last_end = done = from = match.end;
  }
  if (done < text.size()) piece(text.substr(done), false);
}

void SplitPattern::split(std::string_view text, const std::function<void(std::string_view)>& piece) const {
  each(text, [&](std::string_view part, bool) {
    if (!part.empty()) piece(part);
  });
}

void SplitPattern::match(std::string_view text,
                         const std::function<void(std::string_view, bool is_match)>& piece) const {
  each(text, piece);
}

}  // namespace kintsugi::text
