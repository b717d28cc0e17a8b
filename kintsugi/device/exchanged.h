// NVIDIA's tensor core operations for 32 lanes, implemented by shuffles: for devices whose matrix units have other tile
// shapes. Contracts are in gpu.h.
#pragma once

#include "kintsugi/device/gpu.h"

#if defined(__HIP__)
#define GPU_NO_UNROLL _Pragma("nounroll")
#else
#define GPU_NO_UNROLL
#endif

namespace kintsugi::KINTSUGI_GPU {

template <typename T>
__device__ inline void mma_by_exchanges(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], int lane) {
  const int row = lane / 4, column = lane % 4 * 2;
  const auto low = [](uint32_t word) { return widen(T{static_cast<uint16_t>(word)}); };
  const auto high = [](uint32_t word) { return widen(T{static_cast<uint16_t>(word >> 16)}); };
  GPU_NO_UNROLL
  for (int half = 0; half < 2; ++half) GPU_NO_UNROLL
  for (int pair = 0; pair < 4; ++pair) {
    const uint32_t rows[2] = {shuffle(half == 0 ? a[0] : a[2], row * 4 + pair),
                              shuffle(half == 0 ? a[1] : a[3], row * 4 + pair)};
    const uint32_t columns[2] = {shuffle(half == 0 ? b[0] : b[1], column * 4 + pair),
                                 shuffle(half == 0 ? b[0] : b[1], column * 4 + 4 + pair)};
    GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      d[i] += low(rows[i / 2]) * low(columns[i % 2]);
      d[i] += high(rows[i / 2]) * high(columns[i % 2]);
    }
  }
}

template <bool Transposed>
__device__ inline void load_by_exchanges(uint32_t (&r)[4], const void* row, int lane) {
  const int y = lane / 4, x = lane % 4 * 2;
  const auto address = reinterpret_cast<uintptr_t>(row);
  GPU_UNROLL
  for (int m = 0; m < 4; ++m) {
    const auto row_of = [&](int i) { return reinterpret_cast<const uint16_t*>(shuffle(address, m * 8 + i)); };
    if constexpr (Transposed) {
      const uint16_t *first = row_of(x), *second = row_of(x + 1);
      r[m] = static_cast<uint32_t>(first[y]) | static_cast<uint32_t>(second[y]) << 16;
    } else {
      const uint16_t* const from = row_of(y);
      r[m] = static_cast<uint32_t>(from[x]) | static_cast<uint32_t>(from[x + 1]) << 16;
    }
  }
}

}  // namespace kintsugi::KINTSUGI_GPU
