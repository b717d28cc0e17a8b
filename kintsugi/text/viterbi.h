// The segmentation of a text into tokens whose scores have the largest sum (Kudo 2018, section 3.2), by the algorithm
// of Viterbi.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kintsugi/text/prefix_trie.h"

namespace kintsugi::text {

struct Segment {
  size_t begin = 0, end = 0;
  int32_t id = -1;  // -1: a character that no token covers
};

// Const use is safe from several threads at once.
class Viterbi {
 public:
  // `scores` by id; a character alone that is no token costs `unknown_score`. With `single`, sums are kept in
  // single precision, as SentencePiece does; Hugging Face's library does not.
  Viterbi(PrefixTrie trie, std::vector<double> scores, double unknown_score, bool single)
      : trie_(std::move(trie)), scores_(std::move(scores)), unknown_score_(unknown_score), single_(single) {}

  // The segments of `text`, valid UTF-8, in order. Of equal sums the one counts that is found first, from the left.
  void segment(std::string_view text, std::vector<Segment>& segments) const;

 private:
  PrefixTrie trie_;
  std::vector<double> scores_;
  double unknown_score_;
  bool single_;
};

}  // namespace kintsugi::text
