// Blocks along one dim, as copied by concatenate and slice. Dense, row-major.
#pragma once

#include <cstring>

#include "kintsugi/tensor/view.h"

namespace kintsugi::kernels {

// Copies `count` positions of the dim at `axis`, from position `from` of x to position `to` of y; their other dims are
// equal.
inline void copy_along(size_t axis, const tensor::View& x, int64_t from, const tensor::View& y, int64_t to,
                       int64_t count) {
  const int64_t below = x.shape().stride(axis) * tensor::size_of(x.dtype()), in = x.shape()[axis].size,
                out = y.shape()[axis].size;
  int64_t above = 1;
  for (size_t i = 0; i < axis; ++i) above *= x.shape()[i].size;
  for (int64_t a = 0; a < above; ++a)
    std::memcpy(y.data + (a * out + to) * below, x.data + (a * in + from) * below, static_cast<size_t>(count * below));
}

}  // namespace kintsugi::kernels
