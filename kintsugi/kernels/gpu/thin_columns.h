// Matrix products with few rows by FMAs, c [m n] = a [m k] b [k n]: for fp32, and for 16 bits if the device has no
// clusters. In a block, `across` adjacent threads have N columns each, and further threads other rows of b. A thread
// copies what it reads to its own shared memory, kAhead loads ahead.
#pragma once

#include "kintsugi/kernels/gpu/thin_products.h"

namespace kintsugi::KINTSUGI_GPU {

constexpr int kMostAcross = 8;  // maximum number of adjacent threads along columns
constexpr int kAhead = kCopiesBeside ? 6 : 2;
template <int kM>  // maximum block size
constexpr int kMostThin = kM <= 2 ? 512 : 256;

template <typename T, int kM, bool kNorm>
__global__ void __launch_bounds__(kMostThin<kM>, kM == 1 ? 2 : 1) thin_columns(Products p) {
  constexpr int N = kWide<T>, kWarps = kMostThin<kM> / 32;
  GPU_DYNAMIC_SHARED(unsigned char, shared);
  __shared__ float parts[kWarps][kM * kMostAcross * N];
  const OfProducts own = own_product(p.end);
  const Gemm& g = p.at[own.product];  // not captured by any function: compilers for AMD would copy it
  const int side = p.across[own.product], across = 1 << side, columns = across * N;
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  const int width = static_cast<int>(g.n), begin = static_cast<int>(blockIdx.x - own.before) * columns;
  const int column = begin + (thread & (across - 1)) * N, groups = threads >> side;
  const int depth = column < width ? static_cast<int>(g.k) : 0;  // 0 if b has no columns for this thread
  int k = thread >> side;                                        // next row to multiply
  const T* from = static_cast<const T*>(g.b.data) + k * g.b.step + column;
  const int64_t stride = groups * g.b.step;
  unsigned char* const ring = shared + 16 * thread;
  const auto load = [&](int t, int of) {
    if (of < depth) copy_async_16(ring + 16 * t * threads, from);
    copy_async_commit();
    from += stride;
  };

  T* const made = reinterpret_cast<T*>(shared + p.a_at);
  auto* const weights = reinterpret_cast<unsigned char*>(made + kM * p.norm.width);
  if (!p.early) wait_for_kernels_before();
  if constexpr (kNorm) p.norm.ask_for_weights<T, kM>(weights);
  GPU_UNROLL
  for (int t = 0; t < kAhead; ++t) load(t, k + t * groups);
  // Position in c of this thread's sum.
  const int own_row = (thread / N) >> side, own_column = begin + (thread & (columns - 1));
  const bool owns = own_row < kM && own_row < g.m && own_column < width;
  Added added = {};
  if (owns) added.bias = bias_at(g, own_row, own_column);
  if (p.early) wait_for_kernels_before();
  if (k + kAhead * groups >= depth) let_next_begin();
  if (owns) added.kept = kept_at(g, own_row, own_column);
  if constexpr (kNorm) normalize_within<T, kM, kAhead>(p.norm, made, weights);
  const T* x_from = (kNorm ? made : static_cast<const T*>(g.a.data)) + k;
  const int x_step = kNorm ? p.norm.width : static_cast<int>(g.a.step), rows = static_cast<int>(g.m);

  Sums<kM* N> sums = {};
  T x[kAhead][kM] = {};
  const auto load_x = [&](int t, int of) {
    GPU_UNROLL
    for (int r = 0; r < kM; ++r)
      if (of < depth && r < rows) x[t][r] = x_from[r * x_step];
    x_from += groups;
  };
  GPU_UNROLL
  for (int t = 0; t < kAhead; ++t) load_x(t, k + t * groups);
  while (k < depth) {
    GPU_UNROLL
    for (int t = 0; t < kAhead; ++t) {
      copy_async_wait<kAhead - 1>();
      if (k < depth) {
        Packed<T, N> some;
        some.load(reinterpret_cast<const T*>(ring + 16 * t * threads));
        GPU_UNROLL
        for (int r = 0; r < kM; ++r) GPU_UNROLL
        for (int i = 0; i < N; ++i) sums.at[r * N + i] += widen(x[t][r]) * some[i];
      }
      const int next = k + kAhead * groups;
      load(t, next), load_x(t, next);
      if (next + groups >= depth) let_next_begin();
      k += groups;
    }
  }
  for (int mask = across; mask < 32; mask *= 2) sums = sums + shuffle_xor(sums, mask);
  if (thread % 32 < across) {
    GPU_UNROLL
    for (int r = 0; r < kM; ++r) GPU_UNROLL
    for (int i = 0; i < N; ++i) parts[thread / 32][r * columns + thread % 32 * N + i] = sums.at[r * N + i];
  }
  __syncthreads();
  const int warps = threads / 32;
  for (int at = thread; at < kM * columns; at += threads) {
    const int row = at == thread ? own_row : at / columns, to = at == thread ? own_column : begin + at % columns;
    if (row >= g.m || to >= width) continue;
    float sum = 0;
    GPU_UNROLL
    for (int w = 0; w < kWarps; ++w) sum += w < warps ? parts[w][at] : 0;
    if (at != thread) added = {bias_at(g, row, to), kept_at(g, row, to)};
    put_any_result<T>(g, row, to, sum, added);
  }
}

// Block size, and adjacent threads along columns: fewer for shorter rows of b, so that there are blocks for most
// multiprocessors of a large device, but with reads of 64 contiguous bytes, the memory's granularity, unless there
// would be very few blocks.
struct ColumnBlock {
  int threads, across;
};
template <int kM>
ColumnBlock column_block(const Gemm& g, int64_t wide) {
  constexpr int64_t kEnough = kProcessors * 3 / 4;  // blocks
  const int64_t runs = g.n / wide;                  // of 16 bytes, per row of b
  ColumnBlock b = {std::min(g.k >= 1024 ? 512 : 256, kMostThin<kM>), 8};
  if (runs < 8 * kEnough) b.across = 4;
  if (runs <= kProcessors) b.across = 2;
  while (b.threads > 64 && b.threads / 8 >= 2 * g.k) b.threads /= 2;
  return b;
}

}  // namespace kintsugi::KINTSUGI_GPU
