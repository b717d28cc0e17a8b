#include "kintsugi/corpus/words.h"

#include <xxhash.h>

#include <algorithm>
#include <string>

#include "kintsugi/data/hash.h"

namespace kintsugi::corpus {

std::vector<uint64_t> word_hashes(std::string_view text) {
  std::vector<uint64_t> hashes;
  hashes.reserve(text.size() / 6);
  std::string word;
  for_each_word(text, [&](std::string_view raw) {
    word.clear();
    for (const char c : raw) {
      const bool upper = c >= 'A' && c <= 'Z';
      const bool kept =
          static_cast<unsigned char>(c) >= 0x80 || upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
      if (kept) word += upper ? static_cast<char>(c + 32) : c;
    }
    if (!word.empty()) hashes.push_back(XXH3_64bits(word.data(), word.size()));
  });
  return hashes;
}

std::vector<uint64_t> shingles(const std::vector<uint64_t>& hashes, int64_t words) {
  if (hashes.empty()) return {};
  const size_t length = std::min(hashes.size(), static_cast<size_t>(words));
  std::vector<uint64_t> result;
  result.reserve(hashes.size() - length + 1);
  for (size_t i = 0; i + length <= hashes.size(); ++i) {
    uint64_t h = length;
    for (size_t j = 0; j < length; ++j) h = data::mix(h, hashes[i + j]);
    result.push_back(h);
  }
  return result;
}

}  // namespace kintsugi::corpus
