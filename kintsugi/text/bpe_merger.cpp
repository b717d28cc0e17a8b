#include "kintsugi/text/bpe_merger.h"

#include <algorithm>
#include <bit>
#include <queue>

namespace kintsugi::text {
namespace {

constexpr uint32_t kNoRank = UINT32_MAX;
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

void BpeMerger::merge_short(std::span<int32_t> symbols, std::vector<int32_t>& ids) const {
  size_t n = symbols.size();
  uint32_t rank[kShortWord];  // of the pair that begins here
  int32_t merged[kShortWord];
  const auto look = [&](size_t i) {
    const Pair* pair = i + 1 < n ? find(symbols[i], symbols[i + 1]) : nullptr;
    rank[i] = pair ? pair->rank : kNoRank;
    merged[i] = pair ? pair->merged : -1;
  };
  for (size_t i = 0; i < n; ++i) look(i);
  while (n > 1) {
    const size_t best = static_cast<size_t>(std::min_element(rank, rank + n) - rank);
    if (rank[best] == kNoRank) break;
    symbols[best] = merged[best];
    std::copy(symbols.begin() + best + 2, symbols.begin() + n, symbols.begin() + best + 1);
    std::copy(rank + best + 2, rank + n, rank + best + 1);
    std::copy(merged + best + 2, merged + n, merged + best + 1);
    --n;
    look(best);
    if (best > 0) look(best - 1);
  }
  ids.insert(ids.end(), symbols.begin(), symbols.begin() + n);
}

void BpeMerger::merge_long(std::span<const int32_t> symbols, std::vector<int32_t>& ids) const {
  struct Node {
    int32_t symbol;  // -1: merged into the one on its left
    uint32_t previous, next;
  };
  struct Candidate {
    uint32_t rank;
    uint32_t at;
    int32_t left, right, merged;
    bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };
  const auto n = static_cast<uint32_t>(symbols.size());
  std::vector<Node> nodes(n);
  for (uint32_t i = 0; i < n; ++i) nodes[i] = {symbols[i], i - 1, i + 1};
  std::vector<Candidate> storage;
  storage.reserve(n);
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(storage));
  const auto offer = [&](uint32_t left) {
    const uint32_t right = nodes[left].next;
    if (right >= n) return;
    const Pair* pair = find(nodes[left].symbol, nodes[right].symbol);
    if (pair) queue.push({pair->rank, left, nodes[left].symbol, nodes[right].symbol, pair->merged});
  };
  for (uint32_t i = 0; i + 1 < n; ++i) offer(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Node& left = nodes[best.at];
    if (left.symbol != best.left || left.next >= n || nodes[left.next].symbol != best.right) continue;  // it is gone
    Node& right = nodes[left.next];
    left.symbol = best.merged;
    right.symbol = -1;
    left.next = right.next;
    if (left.next < n) nodes[left.next].previous = best.at;
    offer(best.at);
    if (left.previous < n) offer(left.previous);
  }
  for (uint32_t i = 0; i < n; i = nodes[i].next) ids.push_back(nodes[i].symbol);
}

}  // namespace kintsugi::text
