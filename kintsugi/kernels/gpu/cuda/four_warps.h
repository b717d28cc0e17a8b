// Matrix products by four warps with operands in shared memory: PTX wgmma, available in compute capability 9.0
// (compiled for sm_90a). A matrix of 16-bit elements in shared memory has rows of 64, in runs of 16 bytes with run c of
// row r stored at c ^ (r % 8), and is aligned to 1,024 bytes: PTX's "128-byte swizzle".
//
// The result of four warps is [64 8 kN] in fp32: warp w has rows 16 w to 16 w + 15, with the layout of d in mma_16x8x16
// for each 8 columns; left operands in registers have the layout of a.
#pragma once

#include "kintsugi/device/gpu.h"

namespace kintsugi::KINTSUGI_GPU {

// Whether the kernel's code for this device was compiled with KINTSUGI_FOUR_WARPS.
template <typename F>
bool by_four_warps([[maybe_unused]] F* kernel) {
#if defined(__CUDACC__)
  cudaFuncAttributes a = {};
  return cudaFuncGetAttributes(&a, kernel) == cudaSuccess && a.ptxVersion == 90;
#else
  return false;
#endif
}

}  // namespace kintsugi::KINTSUGI_GPU

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define KINTSUGI_FOUR_WARPS 1

namespace kintsugi::KINTSUGI_GPU {

// Makes this thread's copies to shared memory visible to the tensor cores after the next barrier of all threads.
__device__ __forceinline__ void show_to_units() {
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

// Required before the first product that uses registers written by this thread, and after the last.
template <int kN>
__device__ __forceinline__ void pin(float (*d)[4]) {
  GPU_UNROLL
  for (int n = 0; n < kN; ++n) asm volatile("" : "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])::"memory");
}
// For left operands too: tensor cores read them after the instruction that names them.
template <int kK>
__device__ __forceinline__ void pin(const uint32_t (&a)[kK][4]) {
  GPU_UNROLL
  for (int k = 0; k < kK; ++k) asm volatile("" ::"r"(a[k][0]), "r"(a[k][1]), "r"(a[k][2]), "r"(a[k][3]) : "memory");
}
__device__ __forceinline__ void begin_products() {
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}
// Commits products as a group; groups complete in order.
__device__ __forceinline__ void end_group() {
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}
template <int kNewest>  // groups that may still be in flight
__device__ __forceinline__ void wait_for_groups() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kNewest) : "memory");
}
__device__ __forceinline__ void end_products() {
  end_group();
  wait_for_groups<0>();
}

// Descriptor of a matrix whose groups of 8 rows are 1,024 bytes apart.
__device__ __forceinline__ uint64_t matrix_at(const void* shared) {
  const auto at = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  return static_cast<uint64_t>(at >> 4 & 0x3FFF) | uint64_t{1} << 16 | uint64_t{1024 / 16} << 32 | uint64_t{1} << 62;
}

#define KINTSUGI_D4(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define KINTSUGI_D16(i) KINTSUGI_D4(i), KINTSUGI_D4(i + 1), KINTSUGI_D4(i + 2), KINTSUGI_D4(i + 3)
#define KINTSUGI_NAMES16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define KINTSUGI_NAMES32 \
  KINTSUGI_NAMES16       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define KINTSUGI_WGMMA(n, type, d, operands)                                                                    \
  "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.mma_async.sync.aligned.m64n" n "k16.f32." type "." type " {" d \
  "}, " operands ";\n}\n"

// d += a b^T: a [64 16], b [8 kN 16], both given by descriptors of their 16 columns.
template <typename T, int kN>
__device__ __forceinline__ void add_product(float (*d)[4], uint64_t a, uint64_t b) {
  static_assert(kN == 4 || kN == 8);
  if constexpr (kN == 4 && __is_same(T, bf16)) {
    asm volatile(KINTSUGI_WGMMA("32", "bf16", KINTSUGI_NAMES16, "%16, %17, p, 1, 1, 0, 0")
                 : KINTSUGI_D16(0)
                 : "l"(a), "l"(b));
  } else if constexpr (kN == 4) {
    asm volatile(KINTSUGI_WGMMA("32", "f16", KINTSUGI_NAMES16, "%16, %17, p, 1, 1, 0, 0")
                 : KINTSUGI_D16(0)
                 : "l"(a), "l"(b));
  } else if constexpr (__is_same(T, bf16)) {
    asm volatile(KINTSUGI_WGMMA("64", "bf16", KINTSUGI_NAMES32, "%32, %33, p, 1, 1, 0, 0")
                 : KINTSUGI_D16(0), KINTSUGI_D16(4)
                 : "l"(a), "l"(b));
  } else {
    asm volatile(KINTSUGI_WGMMA("64", "f16", KINTSUGI_NAMES32, "%32, %33, p, 1, 1, 0, 0")
                 : KINTSUGI_D16(0), KINTSUGI_D16(4)
                 : "l"(a), "l"(b));
  }
}
// d += a v, with a in registers and v [16 64] given by its rows.
template <typename T>
__device__ __forceinline__ void add_rows_product(float (*d)[4], const uint32_t (&a)[4], uint64_t v) {
  if constexpr (__is_same(T, bf16)) {
    asm volatile(KINTSUGI_WGMMA("64", "bf16", KINTSUGI_NAMES32, "{%32, %33, %34, %35}, %36, p, 1, 1, 1")
                 : KINTSUGI_D16(0), KINTSUGI_D16(4)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(v));
  } else {
    asm volatile(KINTSUGI_WGMMA("64", "f16", KINTSUGI_NAMES32, "{%32, %33, %34, %35}, %36, p, 1, 1, 1")
                 : KINTSUGI_D16(0), KINTSUGI_D16(4)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(v));
  }
}

#undef KINTSUGI_WGMMA
#undef KINTSUGI_NAMES32
#undef KINTSUGI_NAMES16
#undef KINTSUGI_D16
#undef KINTSUGI_D4

}  // namespace kintsugi::KINTSUGI_GPU

#else
#define KINTSUGI_FOUR_WARPS 0
#endif
