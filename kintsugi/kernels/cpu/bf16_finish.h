// From a tile of sums to the stored matmul result.
#pragma once

#include "kintsugi/kernels/cpu/gemm_bf16.h"

namespace kintsugi::kernels::cpu {

// Whether to use non-temporal stores: c is fp32, only written, larger than the L2 cache, and its tiles are whole cache
// lines. The unit's `end` orders these stores before later ones.
inline bool goes_past_caches(const Bf16Product& p) {
  constexpr int64_t kMany = 1 << 20, kLine = 64;
  return p.c_dtype == tensor::DType::f32 && !p.accumulate && !p.epilogue && p.m * p.n > kMany &&
         (reinterpret_cast<uintptr_t>(p.c) | static_cast<uintptr_t>(p.c_row * 4)) % kLine == 0;
}

// Stores the fp32 tile [rows columns], with row stride kTile, to c at (row, column), as specified by Bf16Product.
void finish_tile(const Bf16Product& p, const float* tile, int64_t row, int64_t column, int64_t rows, int64_t columns);
// With AVX-512 BF16, which flushes denormals to 0.
void finish_tile_avx512(const Bf16Product& p, const float* tile, int64_t row, int64_t column, int64_t rows,
                        int64_t columns);

}  // namespace kintsugi::kernels::cpu
