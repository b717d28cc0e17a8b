// Zeros padding, by selection.
#pragma once

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels::cpu {

// Writes zeros where the index of dim `axis` of y is -1, and touches nothing else.
void clear_padding(const KernelCall& call, const tensor::View& y, size_t axis);

}  // namespace kintsugi::kernels::cpu
