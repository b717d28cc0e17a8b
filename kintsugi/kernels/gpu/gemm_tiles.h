// Tiles of matrix products on tensor cores: 16-bit operands in shared memory, fp32 sums in registers. Shared by matmuls
// and convolutions, which differ in how they copy operands.
#pragma once

#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {
namespace {

// Copies kRows x kColumns elements of a matrix to shared memory, with rows padded by 8 elements to avoid bank conflicts
// among 8 adjacent rows; zeros beyond `rows` and `columns`. `wide`: rows are aligned to 16 bytes.
template <int kRows, int kColumns, int kThreads, typename T>
__device__ __forceinline__ void copy_part(T* to, const T* from, int64_t step, int64_t rows, int64_t columns,
                                          bool wide) {
  constexpr int kRuns = kColumns / 8;
  static_assert(kRows * kRuns % kThreads == 0);
  GPU_UNROLL
  for (int i = 0; i < kRows * kRuns; i += kThreads) {
    const int at_run = i + static_cast<int>(threadIdx.x), row = at_run / kRuns, run = at_run % kRuns * 8;
    T* const at = to + row * (kColumns + 8) + run;
    const T* const source = from + row * step + run;
    if (wide && row < rows && run + 8 <= columns) {
      copy_async_16(at, source);
      continue;
    }
    Vec<T, 8> some = {};
    if (row < rows)
      for (int j = 0; j < 8; ++j)
        if (run + j < columns) some[j] = source[j];
    *reinterpret_cast<Vec<T, 8>*>(at) = some;
  }
}

constexpr int kDepth = 32;  // of k, per step

template <int kM, int kN>
struct Shape16 {
  static constexpr int kWarpsM = 2, kWarpsN = kN / 32, kThreads = 32 * kWarpsM * kWarpsN;
  static constexpr int kWarpM = kM / kWarpsM, kWarpN = kN / kWarpsN;
  // Of a thread: of 16 x 8 blocks of c, in the order of mma_16x8x16.
  using Sums = float[kWarpM / 16][kWarpN / 8][4];

  // The first row and column of this thread's warp.
  __device__ static int first_row() { return static_cast<int>(threadIdx.x) / 32 / kWarpsN * kWarpM; }
  __device__ static int first_column() { return static_cast<int>(threadIdx.x) / 32 % kWarpsN * kWarpN; }
};
// Shared memory elements of a tile of a or b, [kSize kDepth], stored as is or transposed.
template <bool kAcross, int kSize>
constexpr int kPart = kAcross ? kDepth*(kSize + 8) : kSize*(kDepth + 8);

// Stores two adjacent elements of a row of c, the second if `both`.
template <typename C>
__device__ __forceinline__ void put_pair(C* to, float x, float y, bool both, bool wide, bool add) {
  if (both && wide) {
    Vec<C, 2> pair = {};
    if (add) pair = *reinterpret_cast<const Vec<C, 2>*>(to);
    put(&pair[0], x, add), put(&pair[1], y, add);
    *reinterpret_cast<Vec<C, 2>*>(to) = pair;
  } else {
    put(to, x, add);
    if (both) put(to + 1, y, add);
  }
}

// sums += a b over `depth` steps of kDepth. copy(step, to_a, to_b) copies the tiles of a step. kAcrossA: tiles of a are
// [k m]; kAcrossB: tiles of b are [k n]. `parts`: kStages tiles of a, then of b.
template <typename T, bool kAcrossA, bool kAcrossB, int kM, int kN, int kStages, typename Copy>
__device__ __forceinline__ void multiply_tiles(T* parts, int64_t depth, const Copy& copy,
                                               typename Shape16<kM, kN>::Sums& sums) {
  using S = Shape16<kM, kN>;
  constexpr int kPartA = kPart<kAcrossA, kM>, kPartB = kPart<kAcrossB, kN>;
  const auto copy_step = [&](int64_t step) {
    const int stage = static_cast<int>(step % kStages);
    copy(step, parts + stage * kPartA, parts + kStages * kPartA + stage * kPartB);
  };
  const int lane = static_cast<int>(threadIdx.x) % 32, first_row = S::first_row(), first_column = S::first_column();
  for (int i = 0; i < kStages - 1; ++i) {
    if (i < depth) copy_step(i);
    copy_async_commit();
  }
  for (int64_t step = 0; step < depth; ++step) {
    copy_async_wait<kStages - 2>();
    __syncthreads();  // copies are visible to all, and the stage of the last step is free
    if (step + kStages - 1 < depth) copy_step(step + kStages - 1);
    copy_async_commit();
    const int stage = static_cast<int>(step % kStages);
    const T *of_a = parts + stage * kPartA, *of_b = parts + kStages * kPartA + stage * kPartB;
    GPU_UNROLL
    for (int k = 0; k < kDepth; k += 16) {
      uint32_t left[S::kWarpM / 16][4], right[S::kWarpN / 16][4];
      GPU_UNROLL
      for (int i = 0; i < S::kWarpM / 16; ++i) {
        const int row = first_row + i * 16;
        if constexpr (kAcrossA) {
          load_matrices<true>(left[i], of_a + (k + lane % 8 + lane / 16 * 8) * (kM + 8) + row + lane / 8 % 2 * 8);
        } else {
          load_matrices(left[i], of_a + (row + lane % 16) * (kDepth + 8) + k + lane / 16 * 8);
        }
      }
      GPU_UNROLL
      for (int j = 0; j < S::kWarpN / 16; ++j) {
        const int column = first_column + j * 16;
        if constexpr (kAcrossB) {
          load_matrices<true>(right[j], of_b + (k + lane % 16) * (kN + 8) + column + lane / 16 * 8);
        } else {
          load_matrices(right[j], of_b + (column + lane % 8 + lane / 16 * 8) * (kDepth + 8) + k + lane / 8 % 2 * 8);
        }
      }
      GPU_UNROLL
      for (int i = 0; i < S::kWarpM / 16; ++i) GPU_UNROLL
      for (int j = 0; j < S::kWarpN / 8; ++j)
        mma_16x8x16<T>(sums[i][j], left[i], {right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]});
    }
  }
}

}  // namespace
}  // namespace kintsugi::KINTSUGI_GPU
