// What convolutions use, which tests replace.
#pragma once

#include <cstdint>

#include "kintsugi/device/gpu.h"
#include "kintsugi/kernels/gpu/convolution_library.h"

namespace kintsugi::KINTSUGI_GPU {

// With at least that many blocks of 128 x 128, 16-bit products use them instead of 64 x 64.
extern int64_t fewest_large_convolution_blocks;

// The library that is tried first; null: none, as in the emulation, where tests set it.
extern kernels::ConvolutionByLibrary convolution_by_library;

}  // namespace kintsugi::KINTSUGI_GPU
