// How a dim is cut into consecutive parts (operations stack and unstack).
#pragma once

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels {

// Elements of both operands are runs of `below` bytes, at positions along one dim.
// whole: [above size] of runs, stacked: [parts above length] of runs
struct Parts {
  int64_t parts, above, size, length, below;
};

// Throws InternalError if the operands or indices of the call do not fit.
Parts parts_of(const KernelCall& call, const tensor::View& whole, const tensor::View& stacked);

// [position of part `part`]: its position in the whole operand, -1 for padding.
const tensor::DimIndex& part_index(const KernelCall& call, int64_t part);

}  // namespace kintsugi::kernels
