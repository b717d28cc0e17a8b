// Shared by matrix product kernels: alignment of rows, and epilogues.
#pragma once

#include "kintsugi/kernels/gpu/activations.h"
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/gemm.h"

namespace kintsugi::KINTSUGI_GPU {

// Whether the rows of every product are aligned to that many elements.
inline bool begins_at(const Gemm& g, const void* data, int64_t bytes, int64_t step, int64_t GemmBatch::*apart,
                      int64_t elements) {
  bool fits = reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0 && step % elements == 0;
  for (int i = 0; i < g.num_batch; ++i) fits &= g.batch[static_cast<size_t>(i)].*apart % elements == 0;
  return fits;
}

__device__ inline float element_of(const void* x, DType dtype, int64_t i) {
  return dtype == DType::f32    ? static_cast<const float*>(x)[i]
         : dtype == DType::bf16 ? widen(static_cast<const bf16*>(x)[i])
                                : widen(static_cast<const f16*>(x)[i]);
}

// Applies the epilogue to an element that this thread has stored.
template <typename C>
__device__ inline void finish(const GemmEpilogue& e, int64_t at) {
  C* const y = static_cast<C*>(e.y) + at;
  const float x = widen(static_cast<const C*>(e.x)[at]);
  *y = narrow<C>(e.slope ? slope_of(e.function, x) * widen(*y) : value_of(e.function, x));
}

}  // namespace kintsugi::KINTSUGI_GPU
