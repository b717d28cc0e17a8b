// A regular expression that cuts text into pieces: every match is a piece, and so is the text between two matches.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace kintsugi::text {

// Const use is safe from several threads at once.
class SplitPattern {
 public:
  // PCRE2's syntax, with Unicode's properties, \s being Unicode's White_Space; `literal` matches the text literally.
  // `where` names it in errors: a UserError says what is wrong with the pattern, and where in it.
  SplitPattern(std::string_view pattern, bool literal, std::string_view where);

  // Calls `piece` for the pieces of `text` in order, none of them empty. `text` must be valid UTF-8.
  void split(std::string_view text, const std::function<void(std::string_view)>& piece) const;
  // The same, and says which pieces are matches.
  void match(std::string_view text, const std::function<void(std::string_view, bool is_match)>& piece) const;

 private:
  template <typename F>
  void each(std::string_view text, F&& piece) const;

  struct Code;
  std::shared_ptr<const Code> code_;
};

// GPT-2's pattern (Radford et al. 2019; the published encoder).
extern const std::string_view kGpt2Pattern;

}  // namespace kintsugi::text
