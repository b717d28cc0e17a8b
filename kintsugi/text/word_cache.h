// Caches the ids of short words, since most words of a text recur.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kintsugi/text/packed_word.h"

namespace kintsugi::text {

// One per thread, shared by all models; 512 KiB. A word evicts another in the same slot.
class WordCache {
 public:
  static WordCache& of_thread();
  // A unique nonzero number for a model.
  static uint32_t next_model();

  // Appends the ids of the nonempty word if they are cached.
  bool find(uint32_t model, std::string_view word, std::vector<int32_t>& ids);
  // Caches the ids for the word of the last `find`, which must have failed just before.
  void put(uint32_t model, std::string_view word, std::span<const int32_t> ids);

 private:
  static constexpr size_t kSlotBits = 13, kMostIds = 8;
  struct Entry {
    PackedWord word{};
    uint32_t model = 0;
    uint16_t size = 0, num_ids = 0;
    std::array<int32_t, kMostIds> ids{};
  };
  static_assert(sizeof(Entry) == 64);

  std::vector<Entry> entries_ = std::vector<Entry>(size_t{1} << kSlotBits);
  PackedWord word_{};
  size_t slot_ = 0;
};

}  // namespace kintsugi::text
