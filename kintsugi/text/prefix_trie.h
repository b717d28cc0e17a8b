// Finds the words of a list with which a text begins.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace kintsugi::text {

// A double-array trie (Aoe 1989). Const use is thread-safe.
class PrefixTrie {
 public:
  PrefixTrie() = default;
  // Takes words and their nonnegative values; skips empty words; of equal ones, the last counts.
  explicit PrefixTrie(std::vector<std::pair<std::string_view, int32_t>> words);

  // Calls f(size, value) for each word with which `text` begins, shortest first.
  template <typename F>
  void each(std::string_view text, F&& f) const {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const uint32_t next = cells_[node].base + static_cast<uint8_t>(text[i]);
      if (next >= cells_.size() || cells_[next].parent != node) return;
      node = next;
      if (cells_[node].value >= 0) f(i + 1, cells_[node].value);
    }
  }
  // The longest word, as its size and value; {0, -1} if there is none.
  std::pair<size_t, int32_t> longest(std::string_view text) const {
    std::pair<size_t, int32_t> found{0, -1};
    each(text, [&](size_t size, int32_t value) { found = {size, value}; });
    return found;
  }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;

  // The child of a node by a byte is the cell at base + byte, if that cell names the node as its parent.
  struct Cell {
    uint32_t base = 0;
    uint32_t parent = kFree;
    int32_t value = -1;
  };
  using Words = std::vector<std::pair<std::string_view, int32_t>>;

  void place(const Words& words);
  uint32_t find_base(const std::vector<uint8_t>& bytes);

  std::vector<Cell> cells_ = std::vector<Cell>(1);
  size_t first_free_ = 1;  // no cell below it is free
  // By the smallest byte of a node: cells of that byte below this one are taken, except those below first_free_.
  std::array<size_t, 256> next_{};
};

}  // namespace kintsugi::text
