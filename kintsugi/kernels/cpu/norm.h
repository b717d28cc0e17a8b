// Shared by layer norm and RMS norm.
#pragma once

#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {

// xhat = (x - mean) * scale
struct NormRow {
  float mean, scale;
};

// x: [rows width]
struct NormSizes {
  int64_t rows, width;
  float epsilon;
};

inline NormSizes norm_sizes(const KernelCall& call) {
  const tensor::Shape& x = call.ins[NormIn::kX].shape();
  const int64_t width = x[x.rank() - 1].size;
  return {width == 0 ? 0 : x.elements() / width, width, static_cast<float>(call.attributes.number("epsilon"))};
}

}  // namespace kintsugi::kernels::cpu
