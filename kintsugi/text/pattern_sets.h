// Sets of characters in patterns: brackets and escapes, in Oniguruma's syntax.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "kintsugi/text/code_set.h"

namespace kintsugi::text {

// Which sets are limited to ASCII: the options (?W), (?D), (?S), (?P).
struct AsciiSets {
  bool word = false, digit = false, space = false, posix = false;
};

struct Brackets {
  CodeSet set;           // the listed characters
  bool negated = false;  // "[^": all others
};

// Parses the brackets at `at`, including nested brackets and &&, and advances `at`. Returns nothing for invalid
// brackets, and for those not verified: ranges that end with a set, octal and control escapes.
std::optional<Brackets> read_brackets(std::string_view pattern, size_t& at, AsciiSets ascii = {});
// The set, or the single character, of the escape at `at`, outside brackets; nothing for any other escape.
std::optional<CodeSet> read_escape(std::string_view pattern, size_t& at);

// Whether it is the name of a POSIX set, in lower case.
bool is_posix_name(std::string_view name);
// The canonical form of set names: lower case, without spaces, "_" and "-".
std::string plain_set_name(std::string_view name);

}  // namespace kintsugi::text
