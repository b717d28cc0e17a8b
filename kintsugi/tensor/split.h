// How one dim is cut into parts of equal length.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/tensor/index.h"

namespace kintsugi::tensor {

// One cut into `parts`. A part is contiguous, or zigzag: of 2 * parts chunks it has chunk c and chunk 2 * parts - 1 -
// c (causal attention then costs every part the same). Sizes that are not divisible are padded at the end.
struct Cut {
  int64_t parts = 1;
  bool zigzag = false;

  bool operator==(const Cut&) const = default;
};

// The length of each part.
int64_t length_after(int64_t length, const Cut& cut);

// The positions that part `c` has of those in `segments` (-1: padding). Cuts nest: a part may be cut again.
std::vector<Segment> cut_segments(const std::vector<Segment>& segments, const Cut& cut, int64_t c);

}  // namespace kintsugi::tensor
