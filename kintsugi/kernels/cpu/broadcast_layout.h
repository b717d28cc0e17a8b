// How the elements of an operand repeat over those of a larger one.
#pragma once

#include <cstdint>
#include <optional>

#include "kintsugi/tensor/shape.h"

namespace kintsugi::kernels::cpu {

// If the dims of `part` are the last dims of `whole`, in order: how often `part` repeats in `whole`.
inline std::optional<int64_t> repeats(const tensor::Shape& part, const tensor::Shape& whole) {
  if (part.rank() > whole.rank()) return std::nullopt;
  const size_t skip = whole.rank() - part.rank();
  for (size_t i = 0; i < part.rank(); ++i)
    if (!(part[i] == whole[skip + i])) return std::nullopt;
  int64_t count = 1;
  for (size_t i = 0; i < skip; ++i) count *= whole[i].size;
  return count;
}

}  // namespace kintsugi::kernels::cpu
