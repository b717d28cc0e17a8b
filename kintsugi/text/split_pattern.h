// A regular expression that splits text into pieces: matches, and the text between matches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace kintsugi::text {

class PatternEngine;

// Const use is thread-safe.
class SplitPattern {
 public:
  // Takes Oniguruma's syntax, as in Hugging Face's tokenizers, with the properties of Unicode 16.0; with `literal`,
  // matches the text literally. `where` names it in errors: throws UserError describing the problem of an invalid
  // pattern.
  SplitPattern(std::string_view pattern, bool literal, std::string_view where);

  // Calls `piece` for the nonempty pieces of `text` in order: an empty match is a cut. `text` must be valid UTF-8.
  void split(std::string_view text, const std::function<void(std::string_view)>& piece) const;
  // The same, but also tells which pieces are matches. They may be empty.
  void match(std::string_view text, const std::function<void(std::string_view, bool is_match)>& piece) const;

 private:
  template <typename F>
  void each(std::string_view text, F&& piece) const;

  std::shared_ptr<const PatternEngine> engine_;  // null: matches nothing
};

// GPT-2's pattern (Radford et al. 2019; the published encoder).
extern const std::string_view kGpt2Pattern;

}  // namespace kintsugi::text
