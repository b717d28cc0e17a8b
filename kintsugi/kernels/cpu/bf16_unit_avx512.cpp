// AVX-512 BF16: a lane accumulates the products of a pair of k.
#include "hwy/base.h"
#include "kintsugi/kernels/cpu/bf16_finish.h"
#include "kintsugi/kernels/cpu/bf16_units.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace kintsugi::kernels::cpu {
namespace {

constexpr int64_t kRows = 8;         // of an accumulator block in registers, two vectors wide
constexpr int64_t kCachedSteps = 8;  // 16 KiB of each panel

void nothing() {}

void order_stores() {
  _mm_sfence();
}

__attribute__((target("avx512f,avx512bw,avx512bf16"))) inline __m512bh pair(const tensor::bf16* a) {
  int32_t two;
  std::memcpy(&two, a, sizeof two);
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(two));
}

// Accumulates `steps` steps from step s on kRows rows, starting from the sums in c, or from zero at the first step.
__attribute__((target("avx512f,avx512bw,avx512bf16"))) void rows(const Bf16Tile& t, int64_t first, int64_t s,
                                                                 int64_t steps) {
  __m512 left[kRows], right[kRows];
  const bool begins = s == 0 && !t.adds;
  const int64_t c_row = t.c_row;  // otherwise the compiler reloads it after each store
  float* c = t.c + first * c_row;
  HWY_UNROLL(8)
  for (int64_t i = 0; i < kRows; ++i) {
    left[i] = begins ? _mm512_setzero_ps() : _mm512_loadu_ps(c + i * c_row);
    right[i] = begins ? _mm512_setzero_ps() : _mm512_loadu_ps(c + i * c_row + 16);
  }
  const tensor::bf16 *a = t.a + first * t.a_row + s * t.a_step, *b = t.b + s * kTile * kStep;
  for (int64_t end = s + steps; s < end; ++s, a += t.a_step, b += kTile * kStep)
    for (int64_t p = 0; p < kStep / 2; ++p) {
      const __m512bh b0 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + p * kStep));
      const __m512bh b1 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + (p + 16) * kStep));
      HWY_UNROLL(8)
      for (int64_t i = 0; i < kRows; ++i) {
        const __m512bh x = pair(a + i * t.a_row + 2 * p);
        left[i] = _mm512_dpbf16_ps(left[i], x, b0);
        right[i] = _mm512_dpbf16_ps(right[i], x, b1);
      }
    }
  HWY_UNROLL(8)
  for (int64_t i = 0; i < kRows; ++i) {
    _mm512_storeu_ps(c + i * c_row, left[i]);
    _mm512_storeu_ps(c + i * c_row + 16, right[i]);
  }
}

// Parts of k whose panels stay in the L1 cache while all rows of the tile pass.
void multiply(const Bf16Tile& t) {
  int64_t s = 0;
  do {
    const int64_t steps = std::min(kCachedSteps, t.steps - s);
    for (int64_t first = 0; first < kTile; first += kRows) rows(t, first, s, steps);
    s += steps;
  } while (s < t.steps);
}

constexpr Bf16Unit kUnit = {"avx512_bf16", nothing,  order_stores,      pack_a_avx512,
                            pack_b_avx512, multiply, finish_tile_avx512};

}  // namespace

// GCC's check includes that the system saves the vector registers.
const Bf16Unit* avx512_bf16_unit() {
  const bool here =
      __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return here ? &kUnit : nullptr;
}

}  // namespace kintsugi::kernels::cpu
#else
namespace kintsugi::kernels::cpu {
const Bf16Unit* avx512_bf16_unit() {
  return nullptr;
}
}  // namespace kintsugi::kernels::cpu
#endif
