// Peak rates of a device, as measured on it.
#pragma once

#include <functional>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/tensor/dtype.h"
#include "kintsugi/train/limits.h"

namespace kintsugi::train {

// Measures matmuls of large square matrices in fp32 and in `dtype`, the run's, and copies within device memory.
// `kernels` must have a device. meet() is as in measure_limits(). Throws UserError if the device lacks the memory.
Limits measure_device_limits(
    const kernels::KernelSet& kernels, base::ThreadTeam& team, tensor::DType dtype,
    const std::function<void()>& meet = [] {});

}  // namespace kintsugi::train
