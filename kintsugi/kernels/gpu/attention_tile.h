// Tiles of attention on the matrix unit: copies to shared memory, and products of what is there. A tile is [rows kHead]
// of 16 bits, whose rows are runs of 16 bytes; run c of row r stands at c ^ (r % 8), so that neither the columns nor
// the rows of 8 x 8 elements share banks.
#pragma once

#include "kintsugi/kernels/gpu/attention_common.h"

namespace kintsugi::KINTSUGI_GPU {

constexpr float kLog2E = 1.44269504f, kLn2 = 0.69314718f;

// 2^x, to about 2 units in the last place; 0 for what is no normal number.
__device__ __forceinline__ float fast_exp2(float x) {
#if defined(__CUDACC__)
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return std::exp2(x);
#endif
}
// tanh(x), with an error below 2e-7.
__device__ __forceinline__ float fast_tanh(float x) {
  const float e = fast_exp2(2 * kLog2E * x) + 1;
#if defined(__CUDACC__)
  float inverse;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(e));
  return 1 - 2 * inverse;
#else
  return 1 - 2 / e;
#endif
}
// The thread. Of wide heads, the compiler is told nothing of it: addresses are made again, and stay in no registers.
template <int kHead>
__device__ __forceinline__ int own_thread() {
  int thread = static_cast<int>(threadIdx.x);
#if !defined(__HIP__)
  if constexpr (kHead > 64) asm volatile("" : "+r"(thread));
#endif
  return thread;
}
// Two elements in a word, the first in the lower half.
template <typename T>
__device__ __forceinline__ uint32_t pack(float low, float high) {
#if defined(__CUDACC__)
  uint32_t word;
  if constexpr (__is_same(T, bf16)) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  }
  return word;
#else
  return static_cast<uint32_t>(narrow<T>(low).bits) | static_cast<uint32_t>(narrow<T>(high).bits) << 16;
#endif
}

template <int kHead>
__device__ __forceinline__ int tile_at(int row, int run) {
  return row * kHead + (run ^ (row & 7)) * 8;
}

// Begins to copy a tile; from(row): where a row begins.
template <int kHead, int kRows, int kThreads, typename T, typename F>
__device__ __forceinline__ void copy_tile(T* to, int head_dim, const F& from) {
  constexpr int kRuns = kHead / 8;
  static_assert(kRows % (kThreads / kRuns) == 0);
  const int thread = own_thread<kHead>(), run = thread % kRuns, first = thread / kRuns;
  if (run * 8 >= head_dim) return;
  GPU_UNROLL
  for (int i = 0; i < kRows; i += kThreads / kRuns)
    copy_async_16(to + tile_at<kHead>(first + i, run), from(first + i) + run * 8);
}

// Zeros in the columns from head_dim on, where copies never write.
template <int kHead, int kThreads, typename T>
__device__ void clear_columns(T* tiles, int rows, int head_dim) {
  if (head_dim == kHead) return;
  for (int i = static_cast<int>(threadIdx.x); i < rows * kHead / 8; i += kThreads)
    if (const int row = i / (kHead / 8), run = i % (kHead / 8); run * 8 >= head_dim)
      *reinterpret_cast<Vec<uint32_t, 4>*>(tiles + tile_at<kHead>(row, run)) = {};
}

// The rows [16] of a tile as the left operands of products over kHead.
template <int kHead, typename T>
__device__ __forceinline__ void hold_rows(uint32_t (&held)[kHead / 16][4], const T* tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  GPU_UNROLL
  for (int k = 0; k < kHead / 16; ++k) load_matrices(held[k], tile + tile_at<kHead>(lane % 16, 2 * k + lane / 16));
}

// s += a b^T. a: the rows of a tile [16 kM, kHead], b: [8 kN, kHead].
template <int kHead, typename T, int kM, int kN>
__device__ __forceinline__ void add_scores(float (&s)[kM][kN][4], const T* a, const T* b) {
  const int lane = own_thread<kHead>() % 32;
  const int b_row = lane % 8 + lane / 16 * 8, b_run = lane / 8 % 2;
  GPU_UNROLL
  for (int k = 0; k < kHead / 16; ++k) {
    uint32_t left[kM][4];
    GPU_UNROLL
    for (int m = 0; m < kM; ++m)
      load_matrices(left[m], a + tile_at<kHead>(lane % 16, 2 * k + lane / 16) + m * 16 * kHead);
    GPU_UNROLL
    for (int n = 0; n < kN; n += 2) {
      uint32_t right[4];
      load_matrices(right, b + tile_at<kHead>(b_row, 2 * k + b_run) + n * 8 * kHead);
      GPU_UNROLL
      for (int m = 0; m < kM; ++m) {
        mma_16x8x16<T>(s[m][n], left[m], {right[0], right[1]});
        mma_16x8x16<T>(s[m][n + 1], left[m], {right[2], right[3]});
      }
    }
  }
}
// The same with 16 rows that are held.
template <int kHead, typename T, int kN>
__device__ __forceinline__ void add_scores(float (&s)[1][kN][4], const uint32_t (&held)[kHead / 16][4], const T* b) {
  const int lane = own_thread<kHead>() % 32;
  const int b_row = lane % 8 + lane / 16 * 8, b_run = lane / 8 % 2;
  GPU_UNROLL
  for (int k = 0; k < kHead / 16; ++k) GPU_UNROLL
  for (int n = 0; n < kN; n += 2) {
    uint32_t right[4];
    load_matrices(right, b + tile_at<kHead>(b_row, 2 * k + b_run) + n * 8 * kHead);
    mma_16x8x16<T>(s[0][n], held[k], {right[0], right[1]});
    mma_16x8x16<T>(s[0][n + 1], held[k], {right[2], right[3]});
  }
}

// A product's result as the left operand of the next one.
template <typename T, int kM, int kN>
__device__ __forceinline__ void pack_left(uint32_t (&left)[kM][kN / 2][4], const float (&s)[kM][kN][4]) {
  GPU_UNROLL
  for (int m = 0; m < kM; ++m) GPU_UNROLL
  for (int n = 0; n < kN; ++n) {
    left[m][n / 2][n % 2 * 2] = pack<T>(s[m][n][0], s[m][n][1]);
    left[m][n / 2][n % 2 * 2 + 1] = pack<T>(s[m][n][2], s[m][n][3]);
  }
}

// o += p v. p: [16 kM, 16 kK], v: the rows of a tile [16 kK, kHead].
template <int kHead, typename T, int kM, int kK>
__device__ __forceinline__ void add_values(float (&o)[kM][kHead / 8][4], const uint32_t (&p)[kM][kK][4], const T* v) {
  const int lane = own_thread<kHead>() % 32;
  GPU_UNROLL
  for (int k = 0; k < kK; ++k) GPU_UNROLL
  for (int n = 0; n < kHead / 8; n += 2) {
    uint32_t right[4];
    load_matrices<true>(right, v + tile_at<kHead>(lane % 16, n + lane / 16) + k * 16 * kHead);
    GPU_UNROLL
    for (int m = 0; m < kM; ++m) {
      mma_16x8x16<T>(o[m][n], p[m][k], {right[0], right[1]});
      mma_16x8x16<T>(o[m][n + 1], p[m][k], {right[2], right[3]});
    }
  }
}

// test(i) in bits kBits i and on. Not all unrolled: its loads would take all registers.
template <int kCount, int kBits = 1, typename F>
__device__ __forceinline__ uint32_t bits_of(const F& test) {
  static_assert(kCount * kBits <= 32);
  uint32_t bits = 0;
#if KINTSUGI_ON_GPU
#pragma unroll 4
#endif
  for (int i = 0; i < kCount; ++i) bits |= static_cast<uint32_t>(test(i)) << (kBits * i);
  return bits;
}

// Hides what a row does not see of its scores against 8 kN keys: s[n][2 half + i] is that of key 8 n + column + i of a
// step of the tile of keys `tile`.
template <int kN>
__device__ __forceinline__ void hide(const AttentionCall& a, int b, int r, int step, int column, float (&s)[kN][4],
                                     int half) {
  constexpr int kPer = kSightTile / (8 * kN);
  const AttentionKeys keys = a.key_tile[b * a.key_tiles + step / kPer];
  const AttentionRow row = a.row_info(b, std::min(r, a.row_tiles * kSightTile - 1));
  if (keys.run) {
    const int begin = keys.low + step % kPer * 8 * kN + column;
    const int first = row.document == keys.document_low ? row.first - begin : INT_MAX;
    const int last = std::min(row.last, keys.high) - begin;
    GPU_UNROLL
    for (int i = 0; i < 2 * kN; ++i)
      if (const int at = i / 2 * 8 + i % 2; at < first || at > last) s[i / 2][half * 2 + i % 2] = -INFINITY;
  } else {
    const uint32_t bits = bits_of<2 * kN>([&](int i) {
      const int key = step * 8 * kN + i / 2 * 8 + column + i % 2;
      return visible(row, a.key_place[key], a.document_of_key(b, key));
    });
    GPU_UNROLL
    for (int i = 0; i < 2 * kN; ++i)
      if (!(bits >> i & 1)) s[i / 2][half * 2 + i % 2] = -INFINITY;
  }
}

// Two neighbours of an output.
template <typename T>
__device__ __forceinline__ void put_two(T* to, float x, float y, bool add) {
  const uint32_t there = add ? *reinterpret_cast<const uint32_t*>(to) : 0;
  if (add) x += widen(T{static_cast<uint16_t>(there)}), y += widen(T{static_cast<uint16_t>(there >> 16)});
  *reinterpret_cast<uint32_t*>(to) = pack<T>(x, y);
}

}  // namespace kintsugi::KINTSUGI_GPU
