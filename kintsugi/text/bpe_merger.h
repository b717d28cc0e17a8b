// The merges of byte-pair encoding (Sennrich et al. 2016, section 3.2) on the symbols of a word.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kintsugi::text {

// Const use is thread-safe.
class BpeMerger {
 public:
  explicit BpeMerger(size_t num_merges);

  // Adds a merge of `left` and `right` to `merged`; the lowest rank merges first, and the leftmost in a tie. Of two
  // merges of the same pair, the first added counts. At most as many as declared to the constructor.
  void add(int32_t left, int32_t right, int32_t merged, uint32_t rank);

  // Merges the symbols in O(n log n) and appends the result; overwrites `symbols`.
  void merge(std::span<int32_t> symbols, std::vector<int32_t>& ids) const;

 private:
  struct Pair {
    uint64_t key = 0;
    uint32_t rank = 0;
    int32_t merged = -1;  // -1: free slot
  };

  const Pair* find(int32_t left, int32_t right) const;
  void merge_short(std::span<int32_t> symbols, std::vector<int32_t>& ids) const;
  void merge_long(std::span<const int32_t> symbols, std::vector<int32_t>& ids) const;

  bool few_ranks_ = true;    // all fit next to a position in a short word
  std::vector<Pair> pairs_;  // an open-addressing hash table whose size is a power of two
};

}  // namespace kintsugi::text
