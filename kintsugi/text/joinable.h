// Between which characters a BPE may merge: elsewhere a word can be cut, and its parts encoded one by one, exactly.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kintsugi::text {

// Const use is safe from several threads at once.
class Joinable {
 public:
  explicit Joinable(size_t num_merges);

  // A merge of two tokens, of which neither is empty.
  void add(std::string_view left, std::string_view right);
  bool find(char32_t left, char32_t right) const {
    return left < 128 && right < 128 ? ascii_[left][right] : find_any(left, right);
  }

 private:
  bool find_any(char32_t left, char32_t right) const;
  size_t slot_of(uint64_t key) const;

  std::array<std::array<bool, 128>, 128> ascii_{};  // [left right], where both are ASCII
  std::vector<uint64_t> keys_;  // a hash table, a power of two in size, open addressing; 0 where a slot is free
};

}  // namespace kintsugi::text
