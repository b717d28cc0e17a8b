// Oniguruma's syntax, in which the patterns of tokenizer.json are written.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::text {

struct OnigurumaPattern {
  std::string text;
  bool unread = false;  // from brackets on that could not be read it is as it was
};

// The same pattern with what depends on tables of characters written out from those of code_set.h, so that it has one
// meaning whatever Unicode version the library knows: properties, \w, \d, \s, \b, [:alpha:], and the case of new
// letters.
// (\X and \y stay, and are the library's.) What is wrong with the pattern is left to the library; UserError, with
// `where`, for a property that has no such name, and for \b in a look-behind, where it cannot be written out.
OnigurumaPattern spell_oniguruma(std::string_view pattern, std::string_view where);

}  // namespace kintsugi::text
