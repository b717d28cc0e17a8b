// Regular expressions for tests, in ECMAScript syntax. Only one source compiles their library, which takes seconds.
#pragma once

#include <string>
#include <vector>

namespace kintsugi::tests {

// Replaces each match; $1 in `with` is the first group.
std::string replaced(const std::string& text, const std::string& pattern, const std::string& with);
// The whole text matches.
bool matches(const std::string& text, const std::string& pattern);
// The groups of a match of the whole text, group 0 first; empty if it does not match.
std::vector<std::string> groups(const std::string& text, const std::string& pattern);

struct Match {
  size_t position = 0;  // in the text
  std::vector<std::string> groups;  // that of the whole match first
};
// Each match in the text, in order.
std::vector<Match> find_all(const std::string& text, const std::string& pattern);

}  // namespace kintsugi::tests
