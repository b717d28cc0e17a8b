// Segments a text into tokens with the maximum sum of scores (Kudo 2018, section 3.2), by the Viterbi algorithm.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kintsugi/text/prefix_trie.h"

namespace kintsugi::text {

struct Segment {
  size_t begin = 0, end = 0;
  int32_t id = -1;  // -1: a character not covered by any token
};

// Const use is thread-safe.
class Viterbi {
 public:
  // `scores` by id; a single character that is not a token costs `unknown_score`. With `single`, accumulates sums in
  // single precision, as SentencePiece does; Hugging Face's library does not.
  Viterbi(PrefixTrie trie, std::vector<double> scores, double unknown_score, bool single)
      : trie_(std::move(trie)), scores_(std::move(scores)), unknown_score_(unknown_score), single_(single) {}

  // The segments of `text`, valid UTF-8, in order. In a tie, the first found from the left counts.
  void segment(std::string_view text, std::vector<Segment>& segments) const;

 private:
  PrefixTrie trie_;
  std::vector<double> scores_;
  double unknown_score_;
  bool single_;
};

}  // namespace kintsugi::text
