// From a tile of sums to where a product is stored.
#pragma once

#include "kintsugi/kernels/cpu/gemm_bf16.h"

namespace kintsugi::kernels::cpu {

// The tile [rows columns] of fp32, kTile from row to row, to the product's c at (row, column), as Bf16Product says.
void finish_tile(const Bf16Product& p, const float* tile, int64_t row, int64_t column, int64_t rows, int64_t columns);
// With AVX-512 BF16, which takes subnormal numbers for 0.
void finish_tile_avx512(const Bf16Product& p, const float* tile, int64_t row, int64_t column, int64_t rows,
                        int64_t columns);

}  // namespace kintsugi::kernels::cpu
