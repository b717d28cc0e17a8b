// Regular expressions for tests, ECMAScript's. Their library is compiled in one source alone: it takes seconds.
#pragma once

#include <string>
#include <vector>

namespace kintsugi::tests {

// The text with each match replaced; $1 in `with` is the first group.
std::string replaced(const std::string& text, const std::string& pattern, const std::string& with);
// All of the text matches.
bool matches(const std::string& text, const std::string& pattern);
// The groups of a match of all of the text, that of the whole first; none where it does not match.
std::vector<std::string> groups(const std::string& text, const std::string& pattern);

struct Match {
  size_t position = 0;  // in the text
  std::vector<std::string> groups;  // that of the whole match first
};
// Each match in the text, in order.
std::vector<Match> find_all(const std::string& text, const std::string& pattern);

}  // namespace kintsugi::tests
