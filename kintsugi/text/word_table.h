// Looks up whole words that are tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::text {

// Const use is thread-safe.
class WordTable {
 public:
  // At most this many words; `tokens` by id must outlive it.
  WordTable(const std::vector<std::string>& tokens, size_t num_words);

  void add(int32_t id);
  // -1 if there is none. `word` must not be empty.
  int32_t find(std::string_view word) const;

 private:
  // Up to 8 bytes are their own key, so that most words need a single memory access.
  struct Word {
    uint64_t key = 0;
    uint32_t size = 0;
    int32_t id = -1;  // -1: free slot
  };

  const std::vector<std::string>& tokens_;
  std::vector<Word> words_;  // an open-addressing hash table whose size is a power of two
};

}  // namespace kintsugi::text
