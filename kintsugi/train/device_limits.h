// What a device can do at most, as measured on it.
#pragma once

#include <functional>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/tensor/dtype.h"
#include "kintsugi/train/limits.h"

namespace kintsugi::train {

// By products of large square matrices in fp32 and in `dtype`, that of the run, and by copies within its memory. The
// set has a device. meet() as of measure_limits. UserError if the device has no memory for it.
Limits measure_device_limits(
    const kernels::KernelSet& kernels, base::ThreadTeam& team, tensor::DType dtype,
    const std::function<void()>& meet = [] {});

}  // namespace kintsugi::train
