// Remembers what short words were encoded to, since most words of a text have occurred before.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kintsugi/text/packed_word.h"

namespace kintsugi::text {

// Each thread has one, which all models share; 512 KiB. A word takes the place of another of the same slot.
class WordCache {
 public:
  static WordCache& of_thread();
  // A number for a model, not 0 and never given twice.
  static uint32_t next_model();

  // Appends the ids of the word, which is not empty, if they are known.
  bool find(uint32_t model, std::string_view word, std::vector<int32_t>& ids);
  // Remembers them for the word of the last `find`, which has just failed.
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
