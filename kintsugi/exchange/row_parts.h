// Boxes of row-major tensors as runs of consecutive elements.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kintsugi/checkpoint/box.h"

namespace kintsugi::exchange {

// Calls f(offset in the box, first element of the tensor, count) for the rows of the box, along its last dim, within
// the range of the box's elements.
template <typename F>
void for_each_row_part(const checkpoint::Box& box, const checkpoint::Range& flat, const tensor::Shape& shape,
                       const F& f) {
  const size_t rank = shape.rank();
  const int64_t width = rank == 0 ? 1 : box.size.back();
  for (int64_t at = flat.begin; at < flat.end;) {
    int64_t rest = at / width, in_row = at % width, first = 0, stride = 1;
    for (size_t d = rank; d-- > 0;) {
      const int64_t own = d + 1 == rank ? in_row : rest % box.size[d];
      if (d + 1 < rank) rest /= box.size[d];
      first += (box.start[d] + own) * stride;
      stride *= shape[d].size;
    }
    const int64_t count = std::min(width - in_row, flat.end - at);
    f(at, first, count);
    at += count;
  }
}

}  // namespace kintsugi::exchange
