// Checks the result of every CUDA runtime call.
#pragma once

#include <cuda_runtime.h>

#include <string_view>

#include "kintsugi/base/error.h"
#include "kintsugi/device/cuda/failures.h"

namespace kintsugi::device {

// Throws UserError, with advice, on failure. `what` continues the phrase "the device failed ".
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  const std::string_view advice = advice_for(error);
  throw base::UserError("device", "the device failed {}: {} ({}){}{}", what, cudaGetErrorString(error),
                        cudaGetErrorName(error), advice.empty() ? "" : "; ", advice);
}

}  // namespace kintsugi::device
