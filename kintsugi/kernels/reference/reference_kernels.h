// The kernels that define what operations compute.
#pragma once

#include <memory>

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels {

// Slow and simple: one thread, every floating-point dtype; sums in fp64.
std::unique_ptr<KernelSet> reference_kernels();

}  // namespace kintsugi::kernels
