// Tests whether elements of a value are padding, by the indices of its dims.
#pragma once

#include "kintsugi/kernels/gpu/strides.h"

namespace kintsugi::KINTSUGI_GPU {

// For one or two dims, such as [batch seq].
struct Places {
  bool whole = true;  // no padding
  Divisor width;      // size of the last dim
  LocalIndex outer, inner;

  __device__ bool real(int64_t i) const {
    if (whole) return true;
    const int64_t row = width.quotient(i);
    return outer[row] >= 0 && inner[i - row * width.by] >= 0;
  }
};

inline bool has_padding(const tensor::DimIndex& index) {
  for (const tensor::Segment& s : index.segments())
    if (s.global < 0 && s.count > 0) return true;
  return false;
}

inline Places places_of(std::string_view kind, const KernelCall& call, const tensor::Shape& shape) {
  base::require(shape.rank() >= 1 && shape.rank() <= 2, "kernel", "{} of {} on a device", kind, to_string(shape));
  const tensor::DimIndex outer = shape.rank() == 2 ? call.index(shape[0].name) : tensor::DimIndex(1);
  const tensor::Dim& last = shape[shape.rank() - 1];
  const tensor::DimIndex& inner = call.index(last.name);
  return {.whole = !has_padding(outer) && !has_padding(inner),
          .width = Divisor(std::max<int64_t>(last.size, 1)),
          .outer = local_index(outer),
          .inner = local_index(inner)};
}

}  // namespace kintsugi::KINTSUGI_GPU
