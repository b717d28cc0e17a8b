// Passes over [rows channels] with per-channel factors or sums, in fp32, bf16 and fp16, on the calling thread.
#pragma once

#include <cstddef>

#include "kintsugi/base/thread_team.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::kernels::cpu {

// sums [2 channels] of x and of its squares; accurate for deviations much smaller than the mean.
void sum_channels(tensor::DType dtype, const std::byte* x, int64_t channels, base::Range rows, double* sums);

// sums [2 channels] of dy * (x - mean), and of dy.
void sum_products(tensor::DType dtype, const std::byte* x, const std::byte* dy, int64_t channels, base::Range rows,
                  const float* mean, double* sums);

// y = x * a + b; y may alias x.
void scale_rows(tensor::DType dtype, const std::byte* x, std::byte* y, int64_t channels, base::Range rows,
                const float* a, const float* b);

// y = x * a + b + added, without `added` if it is null; with `relu`, 0 where that is negative. y may alias x or added.
struct NormalizedRows {
  const std::byte *x, *added;
  std::byte* y;
  bool relu;
};
void normalize_rows(tensor::DType dtype, const NormalizedRows& n, int64_t channels, base::Range rows, const float* a,
                    const float* b);

// dx = dy * a + x * b + c; dx may alias dy.
void combine_rows(tensor::DType dtype, const std::byte* x, const std::byte* dy, std::byte* dx, int64_t channels,
                  base::Range rows, const float* a, const float* b, const float* c);

// sums += weight * x, for n elements.
void add_weighted(tensor::DType dtype, const std::byte* x, float weight, int64_t n, float* sums);

}  // namespace kintsugi::kernels::cpu
