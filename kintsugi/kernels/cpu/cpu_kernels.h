// The kernels of CPUs.
#pragma once

#include <memory>

#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels {

// Fast: oneDNN for matmuls, SIMD selected at run time for the rest. fp64 uses the reference.
std::unique_ptr<KernelSet> cpu_kernels();

}  // namespace kintsugi::kernels
