#include "kintsugi/lower/memory/pack_skyline.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <queue>

namespace kintsugi::lower {

namespace {

// The height of each point: a tree whose nodes store the maximum height of their subtree, and a height that all of its
// points have at least.
class Skyline {
 public:
  explicit Skyline(int num_points)
      : leaves_(std::bit_ceil(static_cast<size_t>(num_points))), greatest_(2 * leaves_, 0), all_(2 * leaves_, 0) {}

  int64_t top(const Interval& points) const {
    int64_t height = 0;
    size_t a = leaves_ + static_cast<size_t>(points.begin), b = leaves_ + static_cast<size_t>(points.end);
    for (size_t n = a; n > 0; n /= 2) height = std::max(height, all_[n]);
    for (size_t n = b; n > 0; n /= 2) height = std::max(height, all_[n]);
    for (++b; a < b; a /= 2, b /= 2) {
      if (a % 2 != 0) height = std::max(height, greatest_[a++]);
      if (b % 2 != 0) height = std::max(height, greatest_[--b]);
    }
    return height;
  }

  // Must be at least top().
  void raise(const Interval& points, int64_t height) {
    size_t a = leaves_ + static_cast<size_t>(points.begin), b = leaves_ + static_cast<size_t>(points.end);
    for (size_t n : {a / 2, b / 2})
      for (; n > 0; n /= 2) greatest_[n] = std::max(greatest_[n], height);
    for (++b; a < b; a /= 2, b /= 2) {
      if (a % 2 != 0) greatest_[a] = all_[a] = height, ++a;
      if (b % 2 != 0) --b, greatest_[b] = all_[b] = height;
    }
  }

 private:
  size_t leaves_;
  std::vector<int64_t> greatest_, all_;
};

}  // namespace

std::vector<int64_t> pack_skyline(const Timeline& t) {
  std::vector<int> order(t.item.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return t.duration[static_cast<size_t>(a)] > t.duration[static_cast<size_t>(b)];
  });
  // Considers the next few items in order, and places the one with the lowest possible offset.
  constexpr size_t kMany = 2048, kFew = 64;
  constexpr int64_t kLooks = 2'000'000;  // after which fewer are considered
  int64_t looks = 0;
  using Candidate = std::pair<int64_t, size_t>;  // height or a lower bound of it, and index in the order
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  Skyline skyline(t.num_points);
  std::vector<int64_t> offsets(t.item.size(), 0);
  for (size_t next = 0; next < order.size() || !candidates.empty();) {
    while (next < order.size() && candidates.size() < (looks < kLooks ? kMany : kFew)) candidates.emplace(0, next++);
    const auto [height, place] = candidates.top();
    candidates.pop();
    ++looks;
    const auto i = static_cast<size_t>(order[place]);
    int64_t offset = 0;
    for (const Interval& live : t.points[i]) offset = std::max(offset, skyline.top(live));
    if (offset != height) {
      candidates.emplace(offset, place);
      continue;
    }
    offsets[i] = offset;
    for (const Interval& live : t.points[i]) skyline.raise(live, offset + t.bytes[i]);
  }
  return offsets;
}

}  // namespace kintsugi::lower
