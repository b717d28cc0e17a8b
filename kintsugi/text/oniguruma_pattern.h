// Oniguruma's syntax, the language of patterns in tokenizer.json.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::text {

struct OnigurumaPattern {
  std::string text;
  bool unread = false;  // unchanged from the first unparsable bracket on
};

// Expands everything that depends on character tables using those of code_set.h, so that the pattern has the same
// meaning for any Unicode version of the library: properties, \w, \d, \s, \b, [:alpha:], and the case of new letters.
// (\X and \y remain, and use the library's tables.) Leaves errors in the pattern to the library. Throws UserError, with
// `where`, for an unknown property, and for \b in a look-behind, where it cannot be expanded.
OnigurumaPattern spell_oniguruma(std::string_view pattern, std::string_view where);

}  // namespace kintsugi::text
