// From a tile of sums to where a product is stored.
#pragma once

#include "kintsugi/kernels/cpu/gemm_bf16.h"

namespace kintsugi::kernels::cpu {

// c is fp32 that is only written, more than the second level cache holds, and its tiles are whole cache lines: these go
// past the caches. The unit's `end` orders them before what follows.
inline bool goes_past_caches(const Bf16Product& p) {
  constexpr int64_t kMany = 1 << 20, kLine = 64;
  return p.c_dtype == tensor::DType::f32 && !p.accumulate && !p.epilogue && p.m * p.n > kMany &&
         (reinterpret_cast<uintptr_t>(p.c) | static_cast<uintptr_t>(p.c_row * 4)) % kLine == 0;
}

// The tile [rows columns] of fp32, kTile from row to row, to the product's c at (row, column), as Bf16Product says.
void finish_tile(const Bf16Product& p, const float* tile, int64_t row, int64_t column, int64_t rows, int64_t columns);
// With AVX-512 BF16, which takes subnormal numbers for 0.
void finish_tile_avx512(const Bf16Product& p, const float* tile, int64_t row, int64_t column, int64_t rows,
                        int64_t columns);

}  // namespace kintsugi::kernels::cpu
