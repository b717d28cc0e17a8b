// Sets of characters in patterns: brackets and escapes, in Oniguruma's syntax.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "kintsugi/text/code_set.h"

namespace kintsugi::text {

// Which sets end with ASCII: the options (?W), (?D), (?S), (?P).
struct AsciiSets {
  bool word = false, digit = false, space = false, posix = false;
};

struct Brackets {
  CodeSet set;           // what is listed
  bool negated = false;  // "[^": they stand for all others
};

// The brackets at `at`, which moves behind them, with the brackets and the && within. Nothing for what is wrong, and
// for what has not been looked into: a range that ends with a set, octal and control escapes.
std::optional<Brackets> read_brackets(std::string_view pattern, size_t& at, AsciiSets ascii = {});
// The set, or the one character, of the escape at `at`, outside brackets; nothing for any other escape.
std::optional<CodeSet> read_escape(std::string_view pattern, size_t& at);

// Whether it is the name of a set in POSIX, in lower case.
bool is_posix_name(std::string_view name);
// As names of sets are compared: in lower case, without spaces, "_" and "-".
std::string plain_set_name(std::string_view name);

}  // namespace kintsugi::text
