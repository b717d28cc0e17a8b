// What tests set of convolutions.
#pragma once

#include <cstdint>

#include "kintsugi/device/gpu.h"

namespace kintsugi::KINTSUGI_GPU {

// With at least that many blocks of 128 x 128, 16-bit products use them instead of 64 x 64.
extern int64_t fewest_large_convolution_blocks;

}  // namespace kintsugi::KINTSUGI_GPU
