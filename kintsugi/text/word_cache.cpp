#include "kintsugi/text/word_cache.h"

#include <algorithm>
#include <atomic>

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
  if (word.size() > kMostPacked) return false;
  word_ = pack(word);
  uint64_t hash = (word_[0] + model) * 0x9E3779B97F4A7C15ULL ^ word_[1];
  if (word.size() > 16) hash = (hash ^ hash >> 32) * 0x9E3779B97F4A7C15ULL ^ word_[2];
  hash = (hash ^ hash >> 32) * 0x9E3779B97F4A7C15ULL;
  slot_ = hash >> (64 - kSlotBits);
  const Entry& entry = entries_[slot_];
  const bool same = entry.word[0] == word_[0] && entry.word[1] == word_[1] && entry.word[2] == word_[2];
  if (!same || entry.model != model || entry.size != word.size()) return false;
  for (size_t i = 0; i < entry.num_ids; ++i) ids.push_back(entry.ids[i]);
  return true;
}

void WordCache::put(uint32_t model, std::string_view word, std::span<const int32_t> ids) {
  if (word.size() > kMostPacked || ids.size() > kMostIds) return;
  Entry& entry = entries_[slot_];
  std::copy(ids.begin(), ids.end(), entry.ids.begin());
  entry.word = word_;
  entry.model = model;
  entry.size = static_cast<uint16_t>(word.size());
  entry.num_ids = static_cast<uint16_t>(ids.size());
}

}  // namespace kintsugi::text
