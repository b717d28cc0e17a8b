// Analyzes which characters can follow one another within a match of a regular expression.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::text {

// Two sets of characters, as texts of all their members: may a text be cut before one of `right` that follows one of
// `left`?
struct CharacterPair {
  std::string left, right;
};

// Returns true if no match of the pattern contains a character of `left` and, anywhere after it, one of `right`, and if
// matching never depends on anything before the match or more than one character after it. Cutting between such a pair
// then preserves the matches. Returns false for patterns where this is unknown: anchors, look-behind, references,
// look-ahead of several characters.
bool never_spans(std::string_view pattern, const CharacterPair& pair);

}  // namespace kintsugi::text
