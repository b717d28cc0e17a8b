// What kernels of products do with their sums.
#pragma once

#include "kintsugi/kernels/gpu/activations.h"
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/gemm.h"

namespace kintsugi::KINTSUGI_GPU {

__device__ inline float element_of(const void* x, DType dtype, int64_t i) {
  return dtype == DType::f32    ? static_cast<const float*>(x)[i]
         : dtype == DType::bf16 ? widen(static_cast<const bf16*>(x)[i])
                                : widen(static_cast<const f16*>(x)[i]);
}

// The epilogue of an element that this thread has stored.
template <typename C>
__device__ inline void finish(const GemmEpilogue& e, int64_t at) {
  C* const y = static_cast<C*>(e.y) + at;
  const float x = widen(static_cast<const C*>(e.x)[at]);
  *y = narrow<C>(e.slope ? slope_of(e.function, x) * widen(*y) : value_of(e.function, x));
}

}  // namespace kintsugi::KINTSUGI_GPU
