// Offsets of buffers in memory that they share: offline dynamic storage allocation, which is NP-hard (Garey and Johnson
// 1979, SR2). Knows nothing of programs.
#pragma once

#include <cstdint>
#include <vector>

namespace kintsugi::lower {

// Instants, inclusive.
struct Interval {
  int begin, end;

  bool operator==(const Interval&) const = default;
};

struct Item {
  int64_t bytes = 0;           // a multiple of the alignment
  std::vector<Interval> live;  // ascending, disjoint: the same memory may be used several times
};

struct Packing {
  std::vector<int64_t> offsets;  // by item
  int64_t bytes = 0;             // where the highest item ends
  int64_t lower_bound = 0;       // the largest sum of bytes live at one instant: no packing is smaller
};

// Two items that are live at one instant do not overlap. The same items give the same offsets, on every machine: the
// search for a better packing ends at the lower bound, or after a number of operations that depends only on the items.
// InternalError for intervals that are not ascending and disjoint.
Packing pack(const std::vector<Item>& items);

}  // namespace kintsugi::lower
