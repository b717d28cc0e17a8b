// Shared by matrix products with few rows: several products in one launch, and the epilogue of their sums.
#pragma once

#include <bit>
#include <vector>

#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/gemm.h"
#include "kintsugi/kernels/gpu/gemm_result.h"
#include "kintsugi/kernels/gpu/norm_within.h"

namespace kintsugi::KINTSUGI_GPU {

// Products that read the same a, with equal m, k and types. Each has its own blocks.
struct Products {
  Gemm at[kMostProducts];
  unsigned end[kMostProducts];  // number of blocks up to and including this product
  int across[kMostProducts];    // thin_columns: log2 of adjacent threads along columns
  int cuts;                     // thin_tiles: log2 of blocks per cluster, which share columns
  int of_cut;                   // rows of b per block
  unsigned a_at, slices_at;     // offsets in shared memory, in bytes
  bool early;                   // b and biases may be read before the preceding kernel has finished
  bool wide_a;                  // rows of a are aligned to 16 bytes
  NormWithin norm;              // produces a, if fused
};

// The product that this block belongs to, and the number of blocks before it.
struct OfProducts {
  int product = 0;
  unsigned before = 0;
};
__device__ __forceinline__ OfProducts own_product(const unsigned (&end)[kMostProducts]) {
  OfProducts own;
  GPU_UNROLL
  for (int i = 0; i + 1 < static_cast<int>(kMostProducts); ++i)
    if (blockIdx.x >= end[i]) own = {i + 1, end[i]};
  return own;
}

// An element in storage format, 0 if absent; its use is delayed until it is widened.
__device__ __forceinline__ uint32_t bits_at(const void* x, DType dtype, int64_t i) {
  if (x == nullptr) return 0;
  return dtype == DType::f32 ? static_cast<const uint32_t*>(x)[i] : static_cast<const uint16_t*>(x)[i];
}
__device__ __forceinline__ float widen_bits(uint32_t bits, DType dtype) {
  const auto half = static_cast<uint16_t>(bits);
  return dtype == DType::f32 ? std::bit_cast<float>(bits) : dtype == DType::bf16 ? widen(bf16{half}) : widen(f16{half});
}
// Terms added to a sum: the bias, and the old value of c if accumulating.
struct Added {
  uint32_t bias, kept;
};
__device__ __forceinline__ uint32_t bias_at(const Gemm& g, int64_t row, int64_t column) {
  return bits_at(g.bias, g.bias_dtype, row * g.bias_row + column * g.bias_column);
}
__device__ __forceinline__ uint32_t kept_at(const Gemm& g, int64_t row, int64_t column) {
  return bits_at(g.accumulate ? g.c : nullptr, g.c_dtype, row * g.c_step + column);
}

// Stores c, and the epilogue of the stored value without reading it back.
template <typename C>
__device__ __forceinline__ void put_result(const Gemm& g, int64_t at, float sum) {
  const C made = narrow<C>(sum);
  const GemmEpilogue& e = g.epilogue;
  if (!e) {
    static_cast<C*>(g.c)[at] = made;
  } else if (e.slope) {
    const float x = widen(static_cast<const C*>(e.x)[at]);
    static_cast<C*>(e.y)[at] = narrow<C>(slope_of(e.function, x) * widen(made));
  } else {
    if (e.keeps()) static_cast<C*>(e.x)[at] = made;
    static_cast<C*>(e.y)[at] = narrow<C>(value_of(e.function, widen(made)));
  }
}
template <typename T>
__device__ __forceinline__ void put_any_result(const Gemm& g, int64_t row, int64_t column, float sum, Added added) {
  const int64_t at = row * g.c_step + column;
  sum = sum + widen_bits(added.bias, g.bias_dtype) + widen_bits(added.kept, g.c_dtype);
  g.c_dtype == DType::f32 ? put_result<float>(g, at, sum) : put_result<T>(g, at, sum);
}

// Memory that a product reads and the preceding kernel rarely writes, and everything it writes.
inline device::Stream::Bytes bytes_of_b(const Gemm& g) {
  const int64_t rows = g.b.transposed ? g.n : g.k, columns = g.b.transposed ? g.k : g.n;
  return bytes_at(g.b.data, ((rows - 1) * g.b.step + columns) * tensor::size_of(g.dtype));
}
inline device::Stream::Bytes bytes_of_bias(const Gemm& g) {
  return bytes_at(g.bias, ((g.m - 1) * g.bias_row + (g.n - 1) * g.bias_column + 1) * tensor::size_of(g.bias_dtype));
}
inline device::Stream::Bytes bytes_of_weights(const AnyData& x, int64_t count) {
  return bytes_at(x.data, x.data == nullptr ? 0 : count * tensor::size_of(x.dtype));
}
inline void add_written(const Gemm& g, std::vector<device::Stream::Bytes>& written) {
  const int64_t bytes = ((g.m - 1) * g.c_step + g.n) * tensor::size_of(g.c_dtype);
  for (const void* at :
       {static_cast<const void*>(g.c), static_cast<const void*>(g.epilogue.x), static_cast<const void*>(g.epilogue.y)})
    if (at != nullptr) written.push_back(bytes_at(at, bytes));
}

}  // namespace kintsugi::KINTSUGI_GPU
