#include "kintsugi/text/prefix_trie.h"

#include <algorithm>
#include <deque>

namespace kintsugi::text {
namespace {

constexpr size_t kByteValues = 256;

}  // namespace

PrefixTrie::PrefixTrie(Words words) {
  std::stable_sort(words.begin(), words.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  place(words);
}

// The smallest base at which the cells of all bytes are free.
uint32_t PrefixTrie::find_base(const std::vector<uint8_t>& bytes) {
  const auto is_taken = [&](size_t at) { return at < cells_.size() && cells_[at].parent != kFree; };
  while (is_taken(first_free_)) ++first_free_;
  const size_t first = bytes.front();
  // Skips taken cells once per byte: otherwise a word of many equal bytes would skip them each time.
  size_t& next = next_[first];
  next = std::max({next, first_free_, first + 1});
  while (is_taken(next)) ++next;
  size_t num_tried = 0;
  for (size_t at = next;; ++at) {
    if (is_taken(at)) continue;
    const size_t base = at - first;
    const bool fits = std::all_of(bytes.begin(), bytes.end(), [&](uint8_t byte) { return !is_taken(base + byte); });
    if (fits) {
      if (cells_.size() < base + kByteValues) cells_.resize(base + kByteValues);
      return static_cast<uint32_t>(base);
    }
    // Gives up cells that suit hardly any node, so that the search does not become quadratic.
    if (++num_tried == kByteValues) first_free_ = std::max(first_free_, at);
  }
}

void PrefixTrie::place(const Words& words) {
  struct Node {
    uint32_t cell;
    size_t begin, end;  // the words that pass through it
    size_t depth;
  };
  std::deque<Node> open = {{0, 0, words.size(), 0}};
  cells_[0].parent = 0;
  while (!open.empty()) {
    Node node = open.front();
    open.pop_front();
    for (; node.begin < node.end && words[node.begin].first.size() == node.depth; ++node.begin)
      if (node.depth > 0) cells_[node.cell].value = words[node.begin].second;
    if (node.begin == node.end) {
      // For nodes without children: a base at which no cell names this node as its parent.
      cells_[node.cell].base = 0;
      continue;
    }
    std::vector<uint8_t> bytes;
    std::vector<size_t> begins;
    for (size_t i = node.begin; i < node.end; ++i) {
      const auto byte = static_cast<uint8_t>(words[i].first[node.depth]);
      if (!bytes.empty() && bytes.back() == byte) continue;
      bytes.push_back(byte);
      begins.push_back(i);
    }
    begins.push_back(node.end);
    const uint32_t base = find_base(bytes);
    cells_[node.cell].base = base;
    for (size_t i = 0; i < bytes.size(); ++i) {
      cells_[base + bytes[i]].parent = node.cell;
      open.push_back({base + bytes[i], begins[i], begins[i + 1], node.depth + 1});
    }
  }
}

}  // namespace kintsugi::text
