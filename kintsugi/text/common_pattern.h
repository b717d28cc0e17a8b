// Patterns that Oniguruma and PCRE2 read alike: those of nearly all published tokenizers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kintsugi/text/code_set.h"

namespace kintsugi::text {

// What PCRE2's own table takes for a general category ("L", "Nd"), among the characters `of`.
using Pcre2Members = std::function<CodeSet(std::string_view category, const CodeSet& of)>;

// The pattern in PCRE2's syntax, with the meaning that it has for Oniguruma, or nothing where it uses anything that the
// two read, or match, differently, or that has not been looked into. Sets of characters are those of Unicode 16.0
// whatever version PCRE2 knows.
std::optional<std::string> spell_pcre2(std::string_view pattern, const Pcre2Members& members);

}  // namespace kintsugi::text
