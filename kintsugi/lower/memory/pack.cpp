#include "kintsugi/lower/memory/pack.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/lower/memory/pack_conflicts.h"
#include "kintsugi/lower/memory/pack_skyline.h"

namespace kintsugi::lower {

namespace {

using Order = std::vector<int>;

constexpr int kMostInMatrix = 1 << 15;  // items; the matrix then takes 128 MiB
constexpr int kRankBits = 15;
constexpr uint64_t kRank = (uint64_t{1} << kRankBits) - 1;
constexpr uint64_t kPlaced = ~uint64_t{0};

// A packing within a thousandth of the lower bound is not improved.
constexpr int64_t kClose = 1000;

// Budget of the search, in pairs of items examined (a few nanoseconds each).
int64_t allowed_operations(int64_t items) {
  return std::min(20'000 * items, 4'000'000 + 4'000 * items);
}

class Packer {
 public:
  explicit Packer(const Timeline& t) : t_(t), conflicts_(t) {
    for (int64_t b : t.bytes) unit_ = std::gcd(unit_, b);
    base::require(std::accumulate(t.bytes.begin(), t.bytes.end(), int64_t{0}) / unit_ < int64_t{1} << (63 - kRankBits),
                  "pack", "{} items are too large together", t.size());
  }

  std::vector<int64_t> run() {
    const std::vector<Order> orders = {by_area(), by_duration(), by_begin(), by_size()};
    const int64_t allowed = allowed_operations(t_.size());
    for (const Order& o : orders)
      if (!done(allowed)) lowest_first(o);
    for (const Order& o : orders)
      if (!done(allowed)) first_fit(o);
    for (size_t round = 0; !done(allowed); ++round)
      improve(orders[round % orders.size()], round / orders.size() % 2 == 0, allowed);
    return best_;
  }

 private:
  bool done(int64_t allowed) const {
    return !best_.empty() && (best_bytes_ - t_.lower_bound <= t_.lower_bound / kClose || operations_ >= allowed);
  }

  template <typename Key>
  Order sorted(Key&& key) const {  // ascending; ties go to the earliest begin
    Order order(t_.item.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(a) < key(b); });
    return order;
  }
  int64_t bytes(int i) const { return t_.bytes[static_cast<size_t>(i)]; }
  int64_t duration(int i) const { return t_.duration[static_cast<size_t>(i)]; }
  Order by_area() const {
    return sorted([&](int i) { return -static_cast<double>(bytes(i)) * static_cast<double>(duration(i)); });
  }
  Order by_duration() const {
    return sorted([&](int i) { return std::pair(-duration(i), -bytes(i)); });
  }
  Order by_begin() const {
    return sorted([&](int i) { return std::pair(t_.points[static_cast<size_t>(i)][0].begin, -duration(i)); });
  }
  Order by_size() const {
    return sorted([&](int i) { return std::pair(-bytes(i), t_.item[static_cast<size_t>(i)]); });
  }

  // Bottom up: of all remaining items, places the one with the lowest possible offset; ties go to the first in the
  // order. (Sekiyama et al. 2018, for items with one interval.)
  void lowest_first(const Order& order) {
    std::vector<uint64_t> keys(conflicts_.words() * 64, kPlaced);  // height in units, then rank in the order
    for (size_t rank = 0; rank < order.size(); ++rank) keys[static_cast<size_t>(order[rank])] = rank;
    const auto least_of = [&](size_t w) {
      return *std::min_element(keys.begin() + static_cast<std::ptrdiff_t>(w) * 64,
                               keys.begin() + static_cast<std::ptrdiff_t>(w + 1) * 64);
    };
    std::vector<uint64_t> least(
        conflicts_.words());  // minimum over 64 items, or a lower bound of it, since keys only grow
    for (size_t w = 0; w < least.size(); ++w) least[w] = least_of(w);
    begin();
    for (size_t n = 0; n < order.size(); ++n) {
      uint64_t lowest = kPlaced;
      for (size_t w = 0; w < least.size(); ++w) {
        if (least[w] >= lowest) continue;
        lowest = std::min(lowest, least[w] = least_of(w));
        operations_ += 32;
      }
      operations_ += 32 + static_cast<int64_t>(least.size());
      const int i = order[lowest & kRank];
      put(i, static_cast<int64_t>(lowest >> kRankBits) * unit_);
      keys[static_cast<size_t>(i)] = kPlaced;
      const uint64_t top = static_cast<uint64_t>(end(i) / unit_) << kRankBits;
      conflicts_.each(i, left_, [&](int j) {
        uint64_t& key = keys[static_cast<size_t>(j)];
        key = std::max(key, top | (key & kRank));
        ++operations_;
      });
    }
    keep();
  }

  // In the given order, each at the lowest offset that is free while it is live.
  void first_fit(const Order& order) {
    std::vector<uint64_t> placed(conflicts_.words(), 0);
    std::vector<std::pair<int64_t, int64_t>> taken;
    begin();
    for (int i : order) {
      taken.clear();
      conflicts_.each(i, placed, [&](int j) { taken.emplace_back(offsets_[static_cast<size_t>(j)], end(j)); });
      std::sort(taken.begin(), taken.end());
      operations_ += 8 + 8 * static_cast<int64_t>(taken.size());
      int64_t offset = 0;
      for (const auto& [from, to] : taken) {
        if (from >= offset + bytes(i)) break;
        offset = std::max(offset, to);
      }
      put(i, offset);
      placed[static_cast<size_t>(i) / 64] |= uint64_t{1} << (i % 64);
    }
    keep();
  }

  // Items that end too high move forward in the next order (squeaky wheel optimization, Joslin and Clements 1999).
  void improve(Order order, bool lowest, int64_t allowed) {
    std::vector<std::pair<double, int>> ranks(order.size());  // next rank, and current
    int64_t best_here = std::numeric_limits<int64_t>::max();
    for (int since = 0; since < kPatience && !done(allowed); ++since) {
      lowest ? lowest_first(order) : first_fit(order);
      if (bytes_ < best_here) {
        best_here = bytes_;
        since = 0;
      }
      for (size_t rank = 0; rank < order.size(); ++rank) {
        const int i = order[rank];
        const bool high = end(i) > t_.lower_bound;
        const double earlier = high ? static_cast<double>(random() % 1024) / 1024 : 1.0;
        ranks[rank] = {static_cast<double>(rank) * earlier, static_cast<int>(rank)};
      }
      std::sort(ranks.begin(), ranks.end());
      Order next(order.size());
      for (size_t rank = 0; rank < order.size(); ++rank) next[rank] = order[static_cast<size_t>(ranks[rank].second)];
      order = std::move(next);
      operations_ += 16 * static_cast<int64_t>(order.size());
    }
  }

  uint64_t random() {  // Marsaglia 2003, xorshift64
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }

  void begin() {
    offsets_.assign(t_.item.size(), -1);
    left_.assign(conflicts_.words(), 0);
    for (size_t i = 0; i < t_.item.size(); ++i) left_[i / 64] |= uint64_t{1} << (i % 64);
    bytes_ = 0;
  }
  void put(int i, int64_t offset) {
    offsets_[static_cast<size_t>(i)] = offset;
    left_[static_cast<size_t>(i) / 64] &= ~(uint64_t{1} << (i % 64));
    bytes_ = std::max(bytes_, end(i));
  }
  int64_t end(int i) const { return offsets_[static_cast<size_t>(i)] + bytes(i); }
  void keep() {
    if (!best_.empty() && bytes_ >= best_bytes_) return;
    best_ = offsets_;
    best_bytes_ = bytes_;
  }

  static constexpr int kPatience = 24;

  const Timeline& t_;
  const Conflicts conflicts_;
  int64_t unit_ = 0;
  int64_t operations_ = 0;
  uint64_t state_ = 0x9e3779b97f4a7c15ULL;
  std::vector<int64_t> offsets_;  // of the packing under construction
  std::vector<uint64_t> left_;    // bit set: items without an offset
  int64_t bytes_ = 0;
  std::vector<int64_t> best_;
  int64_t best_bytes_ = 0;
};

}  // namespace

Packing pack(const std::vector<Item>& items) {
  const Timeline t = timeline_of(items);
  Packing p = {.offsets = std::vector<int64_t>(items.size(), 0), .lower_bound = t.lower_bound};
  if (t.size() > 0) {
    const std::vector<int64_t> offsets = t.size() <= kMostInMatrix ? Packer(t).run() : pack_skyline(t);
    for (size_t i = 0; i < offsets.size(); ++i) p.offsets[static_cast<size_t>(t.item[i])] = offsets[i];
  }
  for (size_t i = 0; i < items.size(); ++i) p.bytes = std::max(p.bytes, p.offsets[i] + items[i].bytes);
  return p;
}

}  // namespace kintsugi::lower
