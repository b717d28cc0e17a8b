// The merges of byte-pair encoding (Sennrich et al. 2016, section 3.2), on the bytes of one word.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

  // Appends the ids of `word`, in n log n steps for n bytes; beyond 16 MiB it is merged in parts of that size. False
  // if the vocabulary lacks one of its bytes; then what was appended is meaningless.
  bool encode_word(std::string_view word, std::vector<int32_t>& ids) const;

 private:
  struct Pair {
    uint64_t key = 0;
    uint32_t rank = 0;
    int32_t merged = -1;  // -1: the slot is free
  };
  // Up to 8 bytes are their own key, so that most words need one memory access.
  struct Word {
    uint64_t key = 0;
    uint32_t size = 0;
    int32_t id = -1;  // -1: the slot is free
  };

  bool encode_part(std::string_view word, std::vector<int32_t>& ids) const;
  void add_pair(const BpeMerge& merge, uint32_t rank);
  void add_word(int32_t id);
  int32_t find_word(std::string_view word) const;
  const Pair* find_pair(int32_t left, int32_t right) const;
  void merge_short(std::span<int32_t> symbols, std::vector<int32_t>& ids) const;
  void merge_long(std::span<const int32_t> symbols, std::vector<int32_t>& ids) const;

  std::vector<std::string> tokens_;
  std::array<int32_t, 256> id_of_byte_{};  // -1 if the vocabulary lacks it
  std::vector<Pair> pairs_;                // a hash table, a power of two in size, open addressing
  std::vector<Word> words_;                // the same: tokens that their own bytes merge to
};

}  // namespace kintsugi::text
