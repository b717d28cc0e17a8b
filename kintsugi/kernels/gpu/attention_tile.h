// Attention tiles on tensor cores: copies to shared memory, and products of tiles. A tile is [rows kHead] of 16 bits,
// in panels of 64 columns whose rows are runs of 16 bytes; run c of row r is stored at c ^ (r % 8), so that neither
// columns nor rows of 8 x 8 elements have bank conflicts. Panels are aligned to 1,024 bytes, as cuda/four_warps.h
// requires.
#pragma once

#include "kintsugi/kernels/gpu/attention_common.h"
#include "kintsugi/kernels/gpu/cuda/four_warps.h"
#include "kintsugi/kernels/gpu/fast_math.h"

namespace kintsugi::KINTSUGI_GPU {

// The thread index. For wide heads it is opaque to the compiler, so that addresses are recomputed and occupy no
// registers.
template <int kHead>
__device__ __forceinline__ int own_thread() {
  int thread = static_cast<int>(threadIdx.x);
#if !defined(__HIP__)
  if constexpr (kHead > 64 || KINTSUGI_FOUR_WARPS) asm volatile("" : "+r"(thread));
#endif
  return thread;
}
// Packs two elements into a word, the first in the lower half.
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

constexpr int kPanel = 64;  // columns

// Offset in a tile of kRows rows.
template <int kRows>
__device__ __forceinline__ int tile_at(int row, int run) {
  return run / 8 * (kRows * kPanel) + row * kPanel + ((run ^ row) & 7) * 8;
}

// Starts copying a tile; from(row): address of a row.
template <int kHead, int kRows, int kThreads, typename T, typename F>
__device__ __forceinline__ void copy_tile(T* to, int head_dim, const F& from) {
  constexpr int kRuns = kHead / 8;
  static_assert(kRows % (kThreads / kRuns) == 0);
  const int thread = own_thread<kHead>(), run = thread % kRuns, first = thread / kRuns;
  if (run * 8 >= head_dim) return;
  GPU_UNROLL
  for (int i = 0; i < kRows; i += kThreads / kRuns)
    copy_async_16(to + tile_at<kRows>(first + i, run), from(first + i) + run * 8);
}
// Waits for all copies that this thread has started; tensor cores can read them once all threads have passed a barrier.
__device__ __forceinline__ void wait_for_tiles() {
  copy_async_wait<0>();
#if KINTSUGI_FOUR_WARPS
  show_to_units();
#endif
}

// Zeros the columns of a tile from head_dim on, which copies never write.
template <int kHead, int kRows, int kThreads, typename T>
__device__ void clear_columns(T* tile, int head_dim) {
  if (head_dim == kHead) return;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kHead / 8; i += kThreads)
    if (const int row = i / (kHead / 8), run = i % (kHead / 8); run * 8 >= head_dim)
      *reinterpret_cast<Vec<uint32_t, 4>*>(tile + tile_at<kRows>(row, run)) = {};
}

// Loads rows `first` to `first` + 15 of a tile as left operands of products over kHead.
template <int kHead, int kRows, typename T>
__device__ __forceinline__ void hold_rows(uint32_t (&held)[kHead / 16][4], const T* tile, int first) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  GPU_UNROLL
  for (int k = 0; k < kHead / 16; ++k)
    load_matrices(held[k], tile + tile_at<kRows>(first + lane % 16, 2 * k + lane / 16));
}

#if KINTSUGI_FOUR_WARPS
// The products of add_scores(), between begin and wait by the caller.
template <int kHead, int kRows, typename T, int kN>
__device__ __forceinline__ void enqueue_scores(float (&s)[kN][4], const T* a, const T* b) {
  constexpr int kKeys = 8 * kN;
  const T* const rows = a + static_cast<int>(threadIdx.x) / 128 * (64 * kPanel);
  GPU_UNROLL
  for (int k = 0; k < kHead / 16; ++k)
    add_product<T, kN>(s, matrix_at(rows + k / 4 * (kRows * kPanel) + k % 4 * 16),
                       matrix_at(b + k / 4 * (kKeys * kPanel) + k % 4 * 16));
}
#endif

// s += a b^T. a: a tile [kRows kHead], 16 rows per warp; b: a tile [8 kN kHead].
template <int kHead, int kRows, typename T, int kN>
__device__ __forceinline__ void add_scores(float (&s)[kN][4], const T* a, const T* b) {
#if KINTSUGI_FOUR_WARPS
  pin<kN>(s);
  begin_products();
  enqueue_scores<kHead, kRows>(s, a, b);
  end_products();
  pin<kN>(s);
#else
  constexpr int kKeys = 8 * kN;
  const int thread = own_thread<kHead>(), lane = thread % 32, row = thread / 32 * 16 + lane % 16;
  const int b_row = lane % 8 + lane / 16 * 8, b_run = lane / 8 % 2;
  GPU_UNROLL
  for (int k = 0; k < kHead / 16; ++k) {
    uint32_t left[4];
    load_matrices(left, a + tile_at<kRows>(row, 2 * k + lane / 16));
    GPU_UNROLL
    for (int n = 0; n < kN; n += 2) {
      uint32_t right[4];
      load_matrices(right, b + tile_at<kKeys>(b_row, 2 * k + b_run) + n * 8 * kPanel);
      mma_16x8x16<T>(s[n], left, {right[0], right[1]});
      mma_16x8x16<T>(s[n + 1], left, {right[2], right[3]});
    }
  }
#endif
}
// The same with rows in registers, using single-warp instructions.
template <int kHead, typename T, int kN>
__device__ __forceinline__ void add_scores(float (&s)[kN][4], const uint32_t (&held)[kHead / 16][4], const T* b) {
  constexpr int kKeys = 8 * kN;
  const int lane = own_thread<kHead>() % 32;
  const int b_row = lane % 8 + lane / 16 * 8, b_run = lane / 8 % 2;
  GPU_UNROLL
  for (int k = 0; k < kHead / 16; ++k) GPU_UNROLL
  for (int n = 0; n < kN; n += 2) {
    uint32_t right[4];
    load_matrices(right, b + tile_at<kKeys>(b_row, 2 * k + b_run) + n * 8 * kPanel);
    mma_16x8x16<T>(s[n], held[k], {right[0], right[1]});
    mma_16x8x16<T>(s[n + 1], held[k], {right[2], right[3]});
  }
}

// s += a b^T, then `with(s)`, overlapped with dp += c d^T where possible.
template <int kHead, int kRows, typename T, int kN, typename F>
__device__ __forceinline__ void add_scores_of_both(float (&s)[kN][4], const T* a, const T* b, float (&dp)[kN][4],
                                                   const T* c, const T* d, const F& with) {
#if KINTSUGI_FOUR_WARPS
  pin<kN>(s);
  pin<kN>(dp);
  begin_products();
  enqueue_scores<kHead, kRows>(s, a, b);
  end_group();
  enqueue_scores<kHead, kRows>(dp, c, d);
  end_group();
  wait_for_groups<1>();
  pin<kN>(s);
  with();
  wait_for_groups<0>();
  pin<kN>(dp);
#else
  add_scores<kHead, kRows>(s, a, b);
  with();
  add_scores<kHead, kRows>(dp, c, d);
#endif
}

// Converts the result of a product to the left operand of the next one.
template <typename T, int kN>
__device__ __forceinline__ void pack_left(uint32_t (&left)[kN / 2][4], const float (&s)[kN][4]) {
  GPU_UNROLL
  for (int n = 0; n < kN; ++n) {
    left[n / 2][n % 2 * 2] = pack<T>(s[n][0], s[n][1]);
    left[n / 2][n % 2 * 2 + 1] = pack<T>(s[n][2], s[n][3]);
  }
}

// o += p v. p: [16 16 kK] per warp, v: a tile [16 kK kHead].
template <int kHead, typename T, int kK>
__device__ __forceinline__ void add_values(float (&o)[kHead / 8][4], const uint32_t (&p)[kK][4], const T* v) {
  constexpr int kKeys = 16 * kK;
#if KINTSUGI_FOUR_WARPS
  pin<kHead / 8>(o);
  pin(p);
  begin_products();
  GPU_UNROLL
  for (int k = 0; k < kK; ++k) GPU_UNROLL
  for (int panel = 0; panel < kHead / kPanel; ++panel)
    add_rows_product<T>(o + panel * 8, p[k], matrix_at(v + panel * (kKeys * kPanel) + k * (16 * kPanel)));
  end_products();
  pin(p);
  pin<kHead / 8>(o);
#else
  const int lane = own_thread<kHead>() % 32;
  GPU_UNROLL
  for (int k = 0; k < kK; ++k) GPU_UNROLL
  for (int n = 0; n < kHead / 8; n += 2) {
    uint32_t right[4];
    load_matrices<true>(right,
                        v + tile_at<kKeys>(lane % 16, n % 8 + lane / 16) + n / 8 * (kKeys * kPanel) + k * 16 * kPanel);
    mma_16x8x16<T>(o[n], p[k], {right[0], right[1]});
    mma_16x8x16<T>(o[n + 1], p[k], {right[2], right[3]});
  }
#endif
}

// test(i) in bits kBits i onwards. Not fully unrolled: its loads would occupy all registers.
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

// Masks the scores of a row for keys that it does not see: s[n][2 half + i] belongs to key 8 n + column + i of a step
// of the tile of keys `tile`.
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

// Stores two adjacent elements of an output.
template <typename T>
__device__ __forceinline__ void put_two(T* to, float x, float y, bool add) {
  const uint32_t there = add ? *reinterpret_cast<const uint32_t*>(to) : 0;
  if (add) x += widen(T{static_cast<uint16_t>(there)}), y += widen(T{static_cast<uint16_t>(there >> 16)});
  *reinterpret_cast<uint32_t*>(to) = pack<T>(x, y);
}

}  // namespace kintsugi::KINTSUGI_GPU
