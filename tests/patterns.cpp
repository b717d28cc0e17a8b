#include "tests/patterns.h"

#include <regex>

namespace kintsugi::tests {
namespace {

std::vector<std::string> groups_of(const std::smatch& match) {
  return {match.begin(), match.end()};
}

}  // namespace

std::string replaced(const std::string& text, const std::string& pattern, const std::string& with) {
  return std::regex_replace(text, std::regex(pattern), with);
}

bool matches(const std::string& text, const std::string& pattern) {
  return !groups(text, pattern).empty();
}

std::vector<std::string> groups(const std::string& text, const std::string& pattern) {
  std::smatch match;
  if (!std::regex_match(text, match, std::regex(pattern))) return {};
  return groups_of(match);
}

std::vector<Match> find_all(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::vector<Match> all;
  for (std::sregex_iterator i(text.begin(), text.end(), expression), end; i != end; ++i)
    all.push_back({static_cast<size_t>(i->position()), groups_of(*i)});
  return all;
}

}  // namespace kintsugi::tests
