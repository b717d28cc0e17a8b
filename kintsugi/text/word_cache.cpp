#include "kintsugi/text/word_cache.h"

#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace kintsugi::text {

WordCache& WordCache::of_thread() {
  thread_local WordCache cache;
  return cache;
}

uint32_t WordCache::next_model() {
  static std::atomic<uint32_t> last = 0;
  return ++last;
}

bool WordCache::find(uint32_t model, std::string_view word, std::vector<int32_t>& ids) {
  if (word.size() > kMostBytes) return false;
  slot_ = XXH3_64bits_withSeed(word.data(), word.size(), model) % kSlots;
  const Entry& entry = entries_[slot_];
  if (entry.model != model || entry.size != word.size() ||
      std::memcmp(entry.word.data(), word.data(), word.size()) != 0)
    return false;
  ids.insert(ids.end(), entry.ids.begin(), entry.ids.begin() + entry.num_ids);
  return true;
}

void WordCache::put(uint32_t model, std::string_view word, std::span<const int32_t> ids) {
  if (word.size() > kMostBytes || ids.size() > kMostIds) return;
  Entry& entry = entries_[slot_];
  std::memcpy(entry.word.data(), word.data(), word.size());
  std::copy(ids.begin(), ids.end(), entry.ids.begin());
  entry.model = model;
  entry.size = static_cast<uint16_t>(word.size());
  entry.num_ids = static_cast<uint16_t>(ids.size());
}

}  // namespace kintsugi::text
