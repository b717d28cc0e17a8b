#include "kintsugi/text/word_table.h"

#include <xxhash.h>

#include <bit>

#include "kintsugi/text/packed_word.h"

namespace kintsugi::text {
namespace {

constexpr size_t kPackedWord = 8;

size_t slot_of(uint64_t key, size_t mask) {
  return (key * 0x9E3779B97F4A7C15ULL >> 29) & mask;
}

uint64_t key_of(std::string_view word) {
  if (word.size() > kPackedWord) return XXH3_64bits(word.data(), word.size());
  return pack_few(word);
}

}  // namespace

WordTable::WordTable(const std::vector<std::string>& tokens, size_t num_words)
    : tokens_(tokens), words_(std::bit_ceil(num_words * 2 + 2)) {}

void WordTable::add(int32_t id) {
  const uint64_t key = key_of(tokens_[id]);
  const size_t mask = words_.size() - 1;
  size_t slot = slot_of(key, mask);
  while (words_[slot].id >= 0) slot = (slot + 1) & mask;
  words_[slot] = {key, static_cast<uint32_t>(tokens_[id].size()), id};
}

int32_t WordTable::find(std::string_view word) const {
  const uint64_t key = key_of(word);
  const size_t mask = words_.size() - 1;
  for (size_t slot = slot_of(key, mask); words_[slot].id >= 0; slot = (slot + 1) & mask) {
    const Word& known = words_[slot];
    if (known.key == key && known.size == word.size() && (word.size() <= kPackedWord || tokens_[known.id] == word)) {
      return known.id;
    }
  }
  return -1;
}

}  // namespace kintsugi::text
