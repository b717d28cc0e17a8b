// How a dim is cut into parts of equal length.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/tensor/index.h"

namespace kintsugi::tensor {

// A cut into `parts`. A part is contiguous, or zigzag: chunks c and 2 * parts - 1 - c of 2 * parts chunks, so that
// causal attention costs the same on every part. Sizes that are not divisible are padded at the end.
struct Cut {
  int64_t parts = 1;
  bool zigzag = false;

  bool operator==(const Cut&) const = default;
};

// The length of each part.
int64_t length_after(int64_t length, const Cut& cut);

// The positions in `segments` (-1: padding) that belong to part `c`. Cuts nest: a part may be cut again.
std::vector<Segment> cut_segments(const std::vector<Segment>& segments, const Cut& cut, int64_t c);

}  // namespace kintsugi::tensor
