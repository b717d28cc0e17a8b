#include "kintsugi/text/bpe_merger.h"

#include <algorithm>
#include <bit>

namespace kintsugi::text {
namespace {

constexpr uint64_t kNoPair = UINT64_MAX;

// Up to this length, a scan of all pairs, each its rank and position in 31 bits, is faster than a tree.
constexpr size_t kShortWord = 64;
constexpr uint32_t kPlaceBits = 6, kRanks = uint32_t{1} << (31 - kPlaceBits);
static_assert(kShortWord == size_t{1} << kPlaceBits);
constexpr int32_t kNoShortPair = INT32_MAX;

uint64_t key_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

size_t slot_of(uint64_t key, size_t mask) {
  return (key * 0x9E3779B97F4A7C15ULL >> 29) & mask;
}

// Minimum of n values; also reads those up to the next multiple of kLanes.
constexpr size_t kLanes = 8;
int32_t least_of(const int32_t* values, size_t n) {
  int32_t least[kLanes];
  std::copy(values, values + kLanes, least);
  for (size_t i = kLanes; i < n; i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane)
      least[lane] = values[i + lane] < least[lane] ? values[i + lane] : least[lane];
  return *std::min_element(least, least + kLanes);
}

// The minimum of n individually updated values: a tree whose nodes hold the minimum of kWidth children; it has no
// value-dependent branches except for stopping early, unlike a heap, which branches at each step.
class LeastOf {
 public:
  explicit LeastOf(size_t n) {
    size_t all = 0;
    for (size_t size = n; all == 0 || size > 1;) {
      size = (size + kWidth - 1) / kWidth;
      begins_.push_back(all);
      all += size * kWidth;
    }
    begins_.push_back(all);  // the root
    values_.resize(all + 1, kNoPair);
  }

  uint64_t least() const { return values_.back(); }

  // Before build(), which creates all nodes.
  void put(size_t i, uint64_t value) { values_[i] = value; }
  void build() {
    for (size_t level = 0; level + 1 < begins_.size(); ++level)
      for (size_t i = begins_[level]; i < begins_[level + 1]; i += kWidth)
        values_[begins_[level + 1] + (i - begins_[level]) / kWidth] = least_of(i);
  }

  void set(size_t i, uint64_t value) {
    values_[i] = value;
    for (size_t level = 0; level + 1 < begins_.size(); ++level) {
      i /= kWidth;
      const uint64_t least = least_of(begins_[level] + i * kWidth);
      uint64_t& node = values_[begins_[level + 1] + i];
      if (node == least) return;
      node = least;
    }
  }

 private:
  static constexpr size_t kWidth = 8;  // of least_of()

  uint64_t least_of(size_t first) const {
    const uint64_t* v = &values_[first];
    const auto of_two = [&](size_t i) { return std::min(v[i], v[i + 4]); };  // in parallel lanes
    return std::min(std::min(of_two(0), of_two(1)), std::min(of_two(2), of_two(3)));
  }

  std::vector<size_t> begins_;  // of each level, leaves first
  std::vector<uint64_t> values_;
};

}  // namespace

BpeMerger::BpeMerger(size_t num_merges) : pairs_(std::bit_ceil(num_merges * 2 + 2)) {}

void BpeMerger::add(int32_t left, int32_t right, int32_t merged, uint32_t rank) {
  few_ranks_ = few_ranks_ && rank < kRanks - 1;
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
  if (symbols.size() <= kShortWord && few_ranks_) {
    merge_short(symbols, ids);
  } else {
    merge_long(symbols, ids);
  }
}

// A symbol merged into its left neighbour keeps its slot, but has no pair.
void BpeMerger::merge_short(std::span<int32_t> symbols, std::vector<int32_t>& ids) const {
  const size_t n = symbols.size();
  alignas(16) int32_t pair_at[kShortWord];  // its rank and where it begins: the minimum merges next
  int32_t merged[kShortWord];
  uint8_t next[kShortWord + 1], previous[kShortWord + 1];
  const auto look = [&](size_t i) {
    const Pair* pair = next[i] < n ? find(symbols[i], symbols[next[i]]) : nullptr;
    pair_at[i] = pair ? static_cast<int32_t>(pair->rank << kPlaceBits | i) : kNoShortPair;
    merged[i] = pair ? pair->merged : -1;
  };
  std::fill_n(pair_at + n, (kShortWord - n) % kLanes, kNoShortPair);
  for (size_t i = 0; i < n; ++i) {
    next[i] = static_cast<uint8_t>(i + 1);
    previous[i + 1] = static_cast<uint8_t>(i);
    look(i);
  }
  while (true) {
    const int32_t least = least_of(pair_at, n);
    if (least == kNoShortPair) break;
    const auto at = static_cast<uint32_t>(least) % kShortWord;
    const size_t gone = next[at];
    symbols[at] = merged[at];
    pair_at[gone] = kNoShortPair;
    next[at] = next[gone];
    previous[next[at]] = static_cast<uint8_t>(at);
    look(at);
    if (at > 0) look(previous[at]);
  }
  for (size_t i = 0; i < n; i = next[i]) ids.push_back(symbols[i]);
}

// The same with a tree over the pairs.
void BpeMerger::merge_long(std::span<const int32_t> symbols, std::vector<int32_t>& ids) const {
  struct Node {
    int32_t symbol;
    int32_t merged;  // of its pair
    uint32_t previous, next;
  };
  const auto n = static_cast<uint32_t>(symbols.size());
  std::vector<Node> nodes(n);
  for (uint32_t i = 0; i < n; ++i) nodes[i] = {symbols[i], -1, i - 1, i + 1};
  LeastOf pairs(n);
  const auto look = [&](uint32_t left) {
    Node& node = nodes[left];
    const Pair* pair = node.next < n ? find(node.symbol, nodes[node.next].symbol) : nullptr;
    node.merged = pair ? pair->merged : -1;
    return pair ? uint64_t{pair->rank} << 32 | left : kNoPair;
  };
  for (uint32_t i = 0; i < n; ++i) pairs.put(i, look(i));
  pairs.build();
  while (pairs.least() != kNoPair) {
    const auto at = static_cast<uint32_t>(pairs.least());
    Node& left = nodes[at];
    const uint32_t gone = left.next;
    left.symbol = left.merged;
    left.next = nodes[gone].next;
    if (left.next < n) nodes[left.next].previous = at;
    pairs.set(gone, kNoPair);
    pairs.set(at, look(at));
    if (left.previous < n) pairs.set(left.previous, look(left.previous));
  }
  for (uint32_t i = 0; i < n; i = nodes[i].next) ids.push_back(nodes[i].symbol);
}

}  // namespace kintsugi::text
