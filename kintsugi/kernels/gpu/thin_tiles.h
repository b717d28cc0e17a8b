// Matrix products with few rows in 16 bits on tensor cores, c [m n] = a [m k] b [k n]: with FMAs a multiprocessor would
// be bound by arithmetic. A block computes 64 columns of c over all of k, or, if there would be few blocks, over part
// of it; the blocks of a cluster then cover the rest, and the first adds up. A warp takes every eighth tile of 16 rows
// of b, copies it to its own shared memory kTilesAhead tiles ahead, and uses its columns as the rows of the left
// operand, and the rows of a as the columns of the right operand.
//
// The next kernel starts once everything has been requested: its requests are then in flight while this one finishes.
#pragma once

#include "kintsugi/kernels/gpu/thin_products.h"

namespace kintsugi::KINTSUGI_GPU {

constexpr int kTileColumns = 64, kTileRows = 16, kTileWarps = 8, kTileThreads = 32 * kTileWarps;
constexpr int kTilesAhead = 6;
constexpr int kTileBytes = kTileRows * kTileColumns * 2;
// A block requests enough shared memory that only one fits on a multiprocessor: with two on some and none on others, it
// took a fifteenth longer.
constexpr size_t kOfOneBlock = 116 * 1024;
constexpr int kTileRing = kTileWarps * kTilesAhead * kTileBytes;

// Copies rows of a to shared memory, from `begin` on, zero-padded to a whole run.
template <typename T, int kM>
__device__ __forceinline__ void stage_rows(T* to, int step, const Gemm& g, int begin, int depth, bool wide) {
  constexpr int kRun = kWide<T>;
  const T* const a = static_cast<const T*>(g.a.data) + begin;
  const int rows = static_cast<int>(g.m);
  for (int at = static_cast<int>(threadIdx.x) * kRun; at < depth; at += kTileThreads * kRun) {
    Vec<T, kRun> some[kM] = {};
    GPU_UNROLL
    for (int r = 0; r < kM; ++r) {
      if (r >= rows) continue;
      const T* const from = a + r * g.a.step + at;
      if (wide && at + kRun <= depth) {
        some[r] = *reinterpret_cast<const Vec<T, kRun>*>(from);
      } else {
        for (int j = 0; j < kRun; ++j)
          if (at + j < depth) some[r][j] = from[j];
      }
    }
    GPU_UNROLL
    for (int r = 0; r < kM; ++r) *reinterpret_cast<Vec<T, kRun>*>(to + r * step + at) = some[r];
  }
  __syncthreads();
}

template <typename T, int kM, bool kNorm>
__global__ void __launch_bounds__(kTileThreads, 2) thin_tiles(Products p) {
  constexpr int kRun = kWide<T>, kTurn = kTileWarps * kTileRows;
  GPU_DYNAMIC_SHARED(unsigned char, shared);
  __shared__ float parts[kTileWarps][kM * kTileColumns];
  const OfProducts own = own_product(p.end);
  const Gemm& g = p.at[own.product];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int block = static_cast<int>(blockIdx.x - own.before), cuts = 1 << p.cuts, cut = block & (cuts - 1);
  const int width = static_cast<int>(g.n), begin = (block >> p.cuts) * kTileColumns, rows = static_cast<int>(g.m);
  const int top = cut * p.of_cut, depth = std::min(static_cast<int>(g.k) - top, p.of_cut);
  // A lane copies one run of every fourth row of a tile. Beyond the last column it repeats the last run, whose results
  // are unused.
  const int column = std::min(begin + lane % 8 * kRun, width - kRun);
  const T* from = static_cast<const T*>(g.b.data) + (top + warp * kTileRows + lane / 8) * g.b.step + column;
  const int64_t stride = kTurn * g.b.step;
  unsigned char* const ring = shared + warp * kTilesAhead * kTileBytes;
  // Run c of row r is stored at c ^ (r % 8), so that rows of 8 x 8 elements have no bank conflicts.
  const auto place = [](int row, int run) { return 16 * (8 * row + ((run ^ row) & 7)); };
  const auto load = [&](int slot, int first) {
    if (first < depth) {
      GPU_UNROLL
      for (int i = 0; i < kTileRows; i += 4) {
        const int row = lane / 8 + i;
        unsigned char* const to = ring + slot * kTileBytes + place(row, lane % 8);
        if (first + row < depth)
          copy_async_16(to, from + i * g.b.step);
        else
          *reinterpret_cast<Vec<uint32_t, 4>*>(to) = {};
      }
    }
    copy_async_commit();
    from += stride;
  };
  int at = warp * kTileRows;  // beginning of the tile that this warp multiplies next

  T* const a = reinterpret_cast<T*>(shared + p.a_at);
  auto* const weights = reinterpret_cast<unsigned char*>(a + kM * p.norm.width);
  if (!p.early) wait_for_kernels_before();
  if constexpr (kNorm) p.norm.ask_for_weights<T, kM>(weights);
  GPU_UNROLL
  for (int t = 0; t < kTilesAhead; ++t) load(t, at + t * kTurn);
  const int own_row = thread / kTileColumns, own_column = begin + thread % kTileColumns;
  const bool owns = cut == 0 && own_row < kM && own_row < rows && own_column < width;
  Added added = {};
  if (owns) added.bias = bias_at(g, own_row, own_column);
  if (cuts > 1) cluster_begins();
  if (p.early) wait_for_kernels_before();
  if (at + kTilesAhead * kTurn >= depth) let_next_begin();
  if (owns) added.kept = kept_at(g, own_row, own_column);
  const int step = kNorm ? p.norm.width : p.of_cut;
  if constexpr (kNorm)
    normalize_within<T, kM, kTilesAhead>(p.norm, a, weights);
  else
    stage_rows<T, kM>(a, step, g, top, depth, p.wide_a);
  // This lane's word of a for the first 16 rows of b, if any.
  const T* const of_a = a + lane / 4 * step + lane % 4 * 2 + (kNorm ? top : 0);

  float sums[kTileColumns / 16][4] = {};
  for (int slot = 0; at < depth; at += kTurn) {
    copy_async_wait<kTilesAhead - 1>();
    warp_barrier();  // tensor core instructions converge the lanes, but do not order others' copies
    uint32_t right[2] = {};
    if (lane / 4 < kM && lane / 4 < rows) {
      right[0] = *reinterpret_cast<const uint32_t*>(of_a + at);
      if (at + kRun < depth) right[1] = *reinterpret_cast<const uint32_t*>(of_a + at + kRun);
    }
    GPU_UNROLL
    for (int j = 0; j < kTileColumns / 16; ++j) {
      uint32_t left[4];
      load_matrices<true>(left, ring + slot * kTileBytes + place(lane % 8 + lane / 16 * 8, 2 * j + lane / 8 % 2));
      mma_16x8x16<T>(sums[j], left, right);
    }
    warp_barrier();  // nor others' reads
    const int next = at + kTilesAhead * kTurn;
    load(slot, next);
    if (next + kTurn >= depth) let_next_begin();
    if (++slot == kTilesAhead) slot = 0;
  }
  GPU_UNROLL
  for (int j = 0; j < kTileColumns / 16; ++j) GPU_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int row = lane % 4 * 2 + i % 2;
    if (row < kM) parts[warp][row * kTileColumns + j * 16 + i / 2 * 8 + lane / 4] = sums[j][i];
  }
  __syncthreads();
  if (cuts == 1 && !owns) return;
  float sum = 0;
  if (thread < kM * kTileColumns) {
    GPU_UNROLL
    for (int w = 0; w < kTileWarps; ++w) sum += parts[w][thread];
  }
  if (cuts > 1) {
    float* const slices = reinterpret_cast<float*>(shared + p.slices_at);  // [cuts kM kTileColumns], in the first block
    if (thread < kM * kTileColumns) of_block_in_cluster(slices, 0)[cut * kM * kTileColumns + thread] = sum;
    cluster_barrier();
    if (!owns) return;
    sum = 0;
    for (int c = 0; c < cuts; ++c) sum += slices[c * kM * kTileColumns + thread];
  }
  put_any_result<T>(g, own_row, own_column, sum, added);
}

// The blocks that share columns: one block per multiprocessor of a large device, but none with fewer rows of b than its
// warps have tiles.
inline int cuts_of_tiles(int64_t tiles, int64_t k) {
  constexpr int kMostCuts = 8;
  int cuts = 1;
  while (cuts < kMostCuts && 2 * cuts * tiles <= kProcessors && 2 * cuts * kTileWarps * kTileRows <= k) cuts *= 2;
  return cuts;
}

}  // namespace kintsugi::KINTSUGI_GPU
