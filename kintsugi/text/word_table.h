// Whole words that are tokens, found by one look-up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::text {

// Const use is safe from several threads at once.
class WordTable {
 public:
  // At most so many words; `tokens` by id must outlive it.
  WordTable(const std::vector<std::string>& tokens, size_t num_words);

  void add(int32_t id);
  // -1 where there is none. `word` is not empty.
  int32_t find(std::string_view word) const;

 private:
  // Up to 8 bytes are their own key, so that most words need one memory access.
  struct Word {
    uint64_t key = 0;
    uint32_t size = 0;
    int32_t id = -1;  // -1: the slot is free
  };

  const std::vector<std::string>& tokens_;
  std::vector<Word> words_;  // a hash table, a power of two in size, open addressing
};

}  // namespace kintsugi::text
