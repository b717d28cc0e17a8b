// The merges of byte-pair encoding (Sennrich et al. 2016, section 3.2) on the bytes of a word.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/text/bpe_merger.h"
#include "kintsugi/text/word_table.h"

namespace kintsugi::text {

// Two ids that merge; the index in the list of merges is the rank, and the lowest rank merges first.
struct BpeMerge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t merged = 0;
};

// Const use is thread-safe.
class BpeModel {
 public:
  struct Options {
    std::vector<std::string> tokens;  // [id], as bytes; "" if the model lacks the id
    std::vector<BpeMerge> merges;
    bool prefer_whole_words = false;  // a word that is a token becomes that token regardless of the merges
  };
  explicit BpeModel(const Options& options);
  BpeModel(const BpeModel&) = delete;
  BpeModel& operator=(const BpeModel&) = delete;

  // Appends the ids of `word` in O(n log n) for n bytes; merges words above 16 MiB in parts of that size. Returns false
  // if the vocabulary lacks one of its bytes, in which case what was appended is meaningless.
  bool encode_word(std::string_view word, std::vector<int32_t>& ids) const;

 private:
  bool encode_part(std::string_view word, std::vector<int32_t>& ids) const;

  std::vector<std::string> tokens_;
  std::array<int32_t, 256> id_of_byte_{};  // -1 if the vocabulary lacks it
  BpeMerger merger_;
  WordTable words_;  // tokens that result from merging their own bytes
};

}  // namespace kintsugi::text
