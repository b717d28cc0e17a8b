// Conflicts between items for pack(): compresses time to few points, and stores conflicting pairs as a bit matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kintsugi/lower/memory/pack.h"

namespace kintsugi::lower {

// Items in order of their first begin. A point is a run of instants in which intervals begin and none ends: all items
// live in it are live together at its last instant.
struct Timeline {
  std::vector<int> item;                      // index of the caller's item, for those with bytes and intervals
  std::vector<int64_t> bytes;                 // per item
  std::vector<int64_t> duration;              // number of instants in which it is live
  std::vector<std::vector<Interval>> points;  // points in which it is live
  int num_points = 0;
  int64_t lower_bound = 0;

  int size() const { return static_cast<int>(item.size()); }
};

// Throws InternalError for intervals that are not ascending and disjoint.
Timeline timeline_of(const std::vector<Item>& items);

// A symmetric bit matrix: bit j of row i is set if items i and j, i != j, are live together.
class Conflicts {
 public:
  explicit Conflicts(const Timeline& t);

  // Calls f(j) for every j in the set that is live together with i.
  template <typename F>
  void each(int i, const std::vector<uint64_t>& set, F&& f) const {
    const uint64_t* row = rows_.data() + static_cast<size_t>(i) * words_;
    const Extent e = extents_[static_cast<size_t>(i)];
    for (size_t w = e.first; w < e.end; ++w)
      for (uint64_t bits = row[w] & set[w]; bits != 0; bits &= bits - 1)
        f(static_cast<int>(w * 64) + __builtin_ctzll(bits));
  }

  size_t words() const { return words_; }

 private:
  struct Extent {
    size_t first, end;  // range of nonzero words in a row
  };

  size_t words_;
  std::vector<uint64_t> rows_;
  std::vector<Extent> extents_;
};

}  // namespace kintsugi::lower
