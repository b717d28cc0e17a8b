// The merges of byte-pair encoding (Sennrich et al. 2016, section 3.2), on the bytes of one word.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/text/bpe_merger.h"
#include "kintsugi/text/word_table.h"

namespace kintsugi::text {

// Two ids that become one; the index in the list of merges is the rank, and the lowest rank merges first.
struct BpeMerge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t merged = 0;
};

// Const use is safe from several threads at once.
class BpeModel {
 public:
  struct Options {
    std::vector<std::string> tokens;  // [id], as bytes; "" if the id is not the model's
    std::vector<BpeMerge> merges;
    bool prefer_whole_words = false;  // a word that is a token is that token, whatever the merges give
  };
  explicit BpeModel(const Options& options);
  BpeModel(const BpeModel&) = delete;
  BpeModel& operator=(const BpeModel&) = delete;

  // Appends the ids of `word`, in n log n steps for n bytes; beyond 16 MiB it is merged in parts of that size. False
  // if the vocabulary lacks one of its bytes; then what was appended is meaningless.
  bool encode_word(std::string_view word, std::vector<int32_t>& ids) const;

 private:
  bool encode_part(std::string_view word, std::vector<int32_t>& ids) const;

  std::vector<std::string> tokens_;
  std::array<int32_t, 256> id_of_byte_{};  // -1 if the vocabulary lacks it
  BpeMerger merger_;
  WordTable words_;  // tokens that their own bytes merge to
};

}  // namespace kintsugi::text
