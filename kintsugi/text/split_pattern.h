// A regular expression that cuts text into pieces: every match is a piece, and so is the text between two matches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace kintsugi::text {

class PatternEngine;

// Const use is safe from several threads at once.
class SplitPattern {
 public:
  // Oniguruma's syntax, as in Hugging Face's tokenizers, with the properties of Unicode 16.0; `literal` matches the
  // text literally. `where` names it in errors: a UserError says what is wrong with the pattern.
  SplitPattern(std::string_view pattern, bool literal, std::string_view where);

  // Calls `piece` for the pieces of `text` in order, none of them empty: a match of nothing is a cut. `text` must be
  // valid UTF-8.
  void split(std::string_view text, const std::function<void(std::string_view)>& piece) const;
  // The same, and says which pieces are matches. They may be empty.
  void match(std::string_view text, const std::function<void(std::string_view, bool is_match)>& piece) const;

 private:
  template <typename F>
  void each(std::string_view text, F&& piece) const;

  std::shared_ptr<const PatternEngine> engine_;  // null: matches nothing
};

// GPT-2's pattern (Radford et al. 2019; the published encoder).
extern const std::string_view kGpt2Pattern;

}  // namespace kintsugi::text
