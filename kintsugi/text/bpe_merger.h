// The merges of byte-pair encoding (Sennrich et al. 2016, section 3.2) on the symbols of one word.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kintsugi::text {

// Const use is safe from several threads at once.
class BpeMerger {
 public:
  explicit BpeMerger(size_t num_merges);

  // `left` and `right` become `merged`; the lowest rank merges first, of equal ones the leftmost. Of two merges of a
  // pair, the first one added counts. At most as many as the constructor was told.
  void add(int32_t left, int32_t right, int32_t merged, uint32_t rank);

  // Appends what the symbols become, in n log n steps; `symbols` is overwritten.
  void merge(std::span<int32_t> symbols, std::vector<int32_t>& ids) const;

 private:
  struct Pair {
    uint64_t key = 0;
    uint32_t rank = 0;
    int32_t merged = -1;  // -1: the slot is free
  };

  const Pair* find(int32_t left, int32_t right) const;
  void merge_short(std::span<int32_t> symbols, std::vector<int32_t>& ids) const;
  void merge_long(std::span<const int32_t> symbols, std::vector<int32_t>& ids) const;

  bool few_ranks_ = true;    // all fit beside a place in a short word
  std::vector<Pair> pairs_;  // a hash table, a power of two in size, open addressing
};

}  // namespace kintsugi::text
