// Shared by layer norm and RMS norm.
#pragma once

#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {

// xhat = (x - mean) * scale
struct NormRow {
  float mean, scale;
};

// x: [rows width], where width is the number of elements of gamma, whose dims are the last of x
struct NormSizes {
  int64_t rows, width;
  float epsilon;
};

inline NormSizes norm_sizes(const KernelCall& call) {
  const int64_t width = call.ins[NormIn::kGamma].elements();
  return {width == 0 ? 0 : call.ins[NormIn::kX].elements() / width, width,
          static_cast<float>(call.attributes.number("epsilon"))};
}

}  // namespace kintsugi::kernels::cpu
