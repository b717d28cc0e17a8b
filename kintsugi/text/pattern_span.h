// Which characters a match of a regular expression may hold one after another.
#pragma once

#include <string>
#include <string_view>

namespace kintsugi::text {

// Two sets of characters, as texts of all their members: whether a text may be cut before one of `right` that follows
// one of `left`.
struct CharacterPair {
  std::string left, right;
};

// True if no match of the pattern holds a character of `left` and, anywhere behind it, one of `right`, and if whether
// and where it matches never depends on what is more than one character away from the match, or before it. Then a text
// cut between such a pair has the matches of the whole. False for a pattern of which that is not known: anchors,
// look-behind, references, look-ahead at several characters.
bool never_spans(std::string_view pattern, const CharacterPair& pair);

}  // namespace kintsugi::text
