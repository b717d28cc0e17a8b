// Patterns that mean the same to Oniguruma and PCRE2: those of nearly all published tokenizers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kintsugi/text/code_set.h"

namespace kintsugi::text {

// The members of a general category ("L", "Nd") in PCRE2's own table, among the characters `of`.
using Pcre2Members = std::function<CodeSet(std::string_view category, const CodeSet& of)>;

// The pattern in PCRE2's syntax with its Oniguruma meaning, or nothing if it uses anything that the two parse or match
// differently, or that has not been verified. Sets of characters are those of Unicode 16.0, independent of PCRE2's
// version.
std::optional<std::string> spell_pcre2(std::string_view pattern, const Pcre2Members& members);

}  // namespace kintsugi::text
