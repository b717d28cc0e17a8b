// Determines between which characters a BPE may merge: elsewhere, words can be cut and their parts encoded separately
// with identical results.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kintsugi::text {

// Const use is thread-safe.
class Joinable {
 public:
  explicit Joinable(size_t num_merges);

  // A merge of two nonempty tokens.
  void add(std::string_view left, std::string_view right);
  bool find(char32_t left, char32_t right) const {
    return left < 128 && right < 128 ? ascii_[left][right] : find_any(left, right);
  }

 private:
  bool find_any(char32_t left, char32_t right) const;
  size_t slot_of(uint64_t key) const;

  std::array<std::array<bool, 128>, 128> ascii_{};  // [left right], where both are ASCII
  std::vector<uint64_t> keys_;  // an open-addressing hash table whose size is a power of two; 0: free slot
};

}  // namespace kintsugi::text
