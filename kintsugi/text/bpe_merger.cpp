#include "kintsugi/text/bpe_merger.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace kintsugi::text {
namespace {

constexpr uint32_t kNoRank = UINT32_MAX;
constexpr uint64_t kNoPair = UINT64_MAX;
constexpr size_t kShortWord = 48;  // from here on a heap is faster than a scan of all pairs

uint64_t key_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

size_t slot_of(uint64_t key, size_t mask) {
  return (key * 0x9E3779B97F4A7C15ULL >> 29) & mask;
}

}  // namespace

BpeMerger::BpeMerger(size_t num_merges) : pairs_(std::bit_ceil(num_merges * 2 + 2)) {}

void BpeMerger::add(int32_t left, int32_t right, int32_t merged, uint32_t rank) {
  const uint64_t key = key_of(left, right);
  const size_t mask = pairs_.size() - 1;
  size_t slot = slot_of(key, mask);
  for (; pairs_[slot].merged >= 0; slot = (slot + 1) & mask) {
    if (pairs_[slot].key == key) return;
  }
  pairs_[slot] = {key, rank, merged};
}

const BpeMerger::Pair* BpeMerger::find(int32_t left, int32_t right) const {
  const uint64_t key = key_of(left, right);
  const size_t mask = pairs_.size() - 1;
  for (size_t slot = slot_of(key, mask); pairs_[slot].merged >= 0; slot = (slot + 1) & mask) {
    if (pairs_[slot].key == key) return &pairs_[slot];
  }
  return nullptr;
}

void BpeMerger::merge(std::span<int32_t> symbols, std::vector<int32_t>& ids) const {
  if (symbols.size() <= kShortWord) {
    merge_short(symbols, ids);
  } else {
    merge_long(symbols, ids);
  }
}

// A symbol that was merged into the one on its left keeps its place, and has no pair.
void BpeMerger::merge_short(std::span<int32_t> symbols, std::vector<int32_t>& ids) const {
  const size_t n = symbols.size();
  uint64_t pair_at[kShortWord];  // its rank and where it begins: the least is merged next
  int32_t merged[kShortWord];
  uint8_t next[kShortWord + 1], previous[kShortWord + 1];
  const auto look = [&](size_t i) {
    const Pair* pair = next[i] < n ? find(symbols[i], symbols[next[i]]) : nullptr;
    pair_at[i] = pair ? uint64_t{pair->rank} << 32 | i : kNoPair;
    merged[i] = pair ? pair->merged : -1;
  };
  for (size_t i = 0; i < n; ++i) {
    next[i] = static_cast<uint8_t>(i + 1);
    previous[i + 1] = static_cast<uint8_t>(i);
    look(i);
  }
  while (true) {
    uint64_t least = kNoPair;
    for (size_t i = 0; i < n; ++i) least = std::min(least, pair_at[i]);
    if (least == kNoPair) break;
    const auto at = static_cast<uint32_t>(least);
    const size_t gone = next[at];
    symbols[at] = merged[at];
    pair_at[gone] = kNoPair;
    next[at] = next[gone];
    previous[next[at]] = static_cast<uint8_t>(at);
    look(at);
    if (at > 0) look(previous[at]);
  }
  for (size_t i = 0; i < n; i = next[i]) ids.push_back(symbols[i]);
}

void BpeMerger::merge_long(std::span<const int32_t> symbols, std::vector<int32_t>& ids) const {
  struct Node {
    int32_t symbol;
    int32_t merged;  // of its pair
    uint32_t rank;   // of its pair; kNoRank: it has none, or was merged into the symbol on its left
    uint32_t previous, next;
  };
  const auto n = static_cast<uint32_t>(symbols.size());
  std::vector<Node> nodes(n);
  for (uint32_t i = 0; i < n; ++i) nodes[i] = {symbols[i], -1, kNoRank, i - 1, i + 1};
  // As in merge_short. A pair that is there no more is found out when its turn comes: the rank at its place is another.
  std::vector<uint64_t> pairs;
  pairs.reserve(n);
  const auto look = [&](uint32_t left) {
    Node& node = nodes[left];
    const Pair* pair = node.next < n ? find(node.symbol, nodes[node.next].symbol) : nullptr;
    node.rank = pair ? pair->rank : kNoRank;
    node.merged = pair ? pair->merged : -1;
    if (pair) pairs.push_back(uint64_t{pair->rank} << 32 | left);
    return pair != nullptr;
  };
  const auto offer = [&](uint32_t left) {
    if (look(left)) std::push_heap(pairs.begin(), pairs.end(), std::greater<>());
  };
  for (uint32_t i = 0; i + 1 < n; ++i) look(i);
  std::make_heap(pairs.begin(), pairs.end(), std::greater<>());
  while (!pairs.empty()) {
    std::pop_heap(pairs.begin(), pairs.end(), std::greater<>());
    const uint64_t least = pairs.back();
    pairs.pop_back();
    const auto at = static_cast<uint32_t>(least);
    Node& left = nodes[at];
    if (left.rank != static_cast<uint32_t>(least >> 32)) continue;
    Node& right = nodes[left.next];
    left.symbol = left.merged;
    left.next = right.next;
    right.rank = kNoRank;
    if (left.next < n) nodes[left.next].previous = at;
    offer(at);
    if (left.previous < n) offer(left.previous);
  }
  for (uint32_t i = 0; i < n; i = nodes[i].next) ids.push_back(nodes[i].symbol);
}

}  // namespace kintsugi::text
