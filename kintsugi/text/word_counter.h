// Counts the occurrences of each word of a corpus: all that BPE training needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/text/pre_tokenizer.h"

namespace kintsugi::text {

// One per thread, then merged; the order does not affect training. Memory is proportional to the number of distinct
// words. Splits words as GPT-2 does; one longer than 1 KiB counts as several. Text added in pieces should be cut
// between words.
class WordCounter {
 public:
  WordCounter() : splitter_(PreTokenizer::gpt2()) {}

  void add(std::string_view text);
  void merge(WordCounter&& other);

  size_t size() const { return words_.size(); }
  uint64_t num_bytes() const { return num_bytes_; }  // of all texts
  std::string_view word(size_t i) const { return {letters_.data() + words_[i].from, words_[i].size}; }
  uint64_t count(size_t i) const { return words_[i].count; }

 private:
  struct Word {
    uint64_t hash = 0;
    uint64_t count = 0;
    size_t from = 0;  // in letters_
    uint32_t size = 0;
  };

  void count_word(std::string_view word, uint64_t times);
  void grow();

  PreTokenizer splitter_;
  std::vector<Word> words_;
  std::vector<uint32_t> slots_;  // an open-addressing hash table of indices in words_ + 1, whose size is a power of two
  std::string letters_;
  uint64_t num_bytes_ = 0;
};

}  // namespace kintsugi::text
