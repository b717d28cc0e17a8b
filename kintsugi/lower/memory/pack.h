// Packs buffers into shared memory: offline dynamic storage allocation, which is NP-hard (Garey and Johnson 1979, SR2).
// Independent of programs.
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
  std::vector<Interval> live;  // ascending, disjoint: the same memory may be used repeatedly
};

struct Packing {
  std::vector<int64_t> offsets;  // [item]
  int64_t bytes = 0;             // end of the highest item
  int64_t lower_bound = 0;       // maximum bytes live at one instant: no packing is smaller
};

// Items live at the same instant do not overlap. Deterministic across machines: the search ends at the lower bound, or
// after a number of operations that depends only on the items. Throws InternalError for intervals that are not
// ascending and disjoint.
Packing pack(const std::vector<Item>& items);

}  // namespace kintsugi::lower
