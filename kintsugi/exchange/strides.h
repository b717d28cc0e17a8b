// Strided elements in two layouts: intersection with ranges, and copies between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kintsugi/checkpoint/box.h"

namespace kintsugi::exchange {

// Elements in a linear order: the element with indices i is at first + sum of i[d] * stride[d]. Strides are positive,
// and no dim extends into the next larger stride.
struct Grid {
  int64_t first = 0;
  std::vector<int64_t> size;
  std::vector<int64_t> stride;

  int64_t at(const std::vector<int64_t>& index) const;
};

// All elements of a box, in row-major order from 0.
Grid grid_of(const checkpoint::Box& box);

// Calls f with boxes of indices that together cover the grid's elements within the range.
void for_each_box(const Grid& grid, const checkpoint::Range& range,
                  const std::function<void(const checkpoint::Box&)>& f);

// A dim of a copy; strides in elements.
struct CopyDim {
  int64_t size = 1;
  int64_t from = 0;
  int64_t to = 0;
};

// Removes dims of size 1, sorts by decreasing stride of `from` and merges adjacent dims that are contiguous in both
// layouts.
std::vector<CopyDim> simplified(std::vector<CopyDim> dims);

// Copies elements of 2, 4 or 8 bytes. Transposes in cache-sized tiles. The memory must not overlap.
void copy_strided(const std::vector<CopyDim>& dims, const std::byte* from, std::byte* to, int64_t element_size);

}  // namespace kintsugi::exchange
