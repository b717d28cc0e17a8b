// Tests whether elements of a value are padding, by the indices of its dims.
#pragma once

#include "kintsugi/kernels/gpu/strides.h"

namespace kintsugi::KINTSUGI_GPU {

// For up to five dims, such as [batch seq] or [batch spatial... target].
struct Places {
  static constexpr int kMost = 5;
  bool whole = true;  // no padding
  int rank = 1;
  Divisor size[kMost];
  LocalIndex index[kMost];

  __device__ bool real(int64_t i) const {
    if (whole) return true;
    bool inside = true;
    GPU_UNROLL
    for (int d = kMost - 1; d >= 0; --d) {
      if (d >= rank) continue;
      const int64_t above = d == 0 ? 0 : size[d].quotient(i);
      inside = inside && index[d][i - above * size[d].by] >= 0;
      i = above;
    }
    return inside;
  }
};

inline bool has_padding(const tensor::DimIndex& index) {
  for (const tensor::Segment& s : index.segments())
    if (s.global < 0 && s.count > 0) return true;
  return false;
}

inline Places places_of(std::string_view kind, const KernelCall& call, const tensor::Shape& shape) {
  base::require(shape.rank() >= 1 && shape.rank() <= static_cast<size_t>(Places::kMost), "kernel",
                "{} of {} on a device", kind, to_string(shape));
  Places made{.rank = static_cast<int>(shape.rank()), .size = {}, .index = {}};
  for (size_t d = 0; d < shape.rank(); ++d) {
    const tensor::DimIndex& index = call.index(shape[d].name);
    made.whole = made.whole && !has_padding(index);
    made.size[d] = Divisor(std::max<int64_t>(shape[d].size, 1));
    made.index[d] = local_index(index);
  }
  return made;
}

}  // namespace kintsugi::KINTSUGI_GPU
