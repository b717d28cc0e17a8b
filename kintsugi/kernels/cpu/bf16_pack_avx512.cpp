// Packing with AVX-512. A square of 16 rows or columns by 16 pairs of k, 1 KiB, fills one tile register: a's has a
// cache line per row, b's a line per pair. In memory, either the k of a row or the rows of a k are contiguous.
#include "hwy/base.h"
#include "kintsugi/kernels/cpu/bf16_units.h"

#if defined(__x86_64__)
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // a warning in g++ 12's own headers
#endif
#include <immintrin.h>

#include <algorithm>

#define KINTSUGI_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))

namespace kintsugi::kernels::cpu {
namespace {

using tensor::bf16;

constexpr int64_t kSide = 16, kSquare = 2 * kSide * kSide;  // elements
constexpr int64_t kAhead = 128;                             // elements of a row to prefetch before packing

struct Square {
  __m512i lines[kSide];
};

// A line for each of `count` rows of n k.
KINTSUGI_AVX512 inline void load_rows(const bf16* from, int64_t stride, int64_t count, int64_t n, Square& to) {
  const __mmask32 mask = n >= 2 * kSide ? ~0u : (1u << n) - 1;
  for (int64_t i = 0; i < kSide; ++i) {
    _mm_prefetch(reinterpret_cast<const char*>(from + i * stride + kAhead), _MM_HINT_T0);
    to.lines[i] = i < count ? _mm512_maskz_loadu_epi16(mask, from + i * stride) : _mm512_setzero_si512();
  }
}

// A line for each pair of the n k, of `count` contiguous rows.
KINTSUGI_AVX512 inline void load_pairs(const bf16* from, int64_t stride, int64_t count, int64_t n, Square& to) {
  const __mmask16 mask = static_cast<__mmask16>(count >= kSide ? 0xFFFFu : (1u << std::max<int64_t>(count, 0)) - 1);
  for (int64_t p = 0; p < kSide; ++p) {
    const bf16* here = from + 2 * p * stride;
    __m512i line = _mm512_setzero_si512();
    if (2 * p < n) {
      _mm_prefetch(reinterpret_cast<const char*>(here) + 64, _MM_HINT_T0);
      line = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, here));
    }
    if (2 * p + 1 < n) {
      _mm_prefetch(reinterpret_cast<const char*>(here + stride) + 64, _MM_HINT_T0);
      const __m512i odd = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, here + stride));
      line = _mm512_or_si512(line, _mm512_slli_epi32(odd, 16));
    }
    to.lines[p] = line;
  }
}

KINTSUGI_AVX512 inline void transpose(Square& s) {
  __m512i x[kSide], y[kSide];
  HWY_UNROLL(8)
  for (int i = 0; i < 8; ++i) {
    x[2 * i] = _mm512_unpacklo_epi32(s.lines[2 * i], s.lines[2 * i + 1]);
    x[2 * i + 1] = _mm512_unpackhi_epi32(s.lines[2 * i], s.lines[2 * i + 1]);
  }
  HWY_UNROLL(4)
  for (int i = 0; i < 4; ++i) {  // y[4 i + j]: column j of each 128 bits, rows 4 i to 4 i + 3
    y[4 * i] = _mm512_unpacklo_epi64(x[4 * i], x[4 * i + 2]);
    y[4 * i + 1] = _mm512_unpackhi_epi64(x[4 * i], x[4 * i + 2]);
    y[4 * i + 2] = _mm512_unpacklo_epi64(x[4 * i + 1], x[4 * i + 3]);
    y[4 * i + 3] = _mm512_unpackhi_epi64(x[4 * i + 1], x[4 * i + 3]);
  }
  HWY_UNROLL(4)
  for (int j = 0; j < 4; ++j) {
    const __m512i a = _mm512_shuffle_i32x4(y[j], y[4 + j], 0x88), b = _mm512_shuffle_i32x4(y[j], y[4 + j], 0xDD),
                  c = _mm512_shuffle_i32x4(y[8 + j], y[12 + j], 0x88),
                  d = _mm512_shuffle_i32x4(y[8 + j], y[12 + j], 0xDD);
    s.lines[j] = _mm512_shuffle_i32x4(a, c, 0x88);
    s.lines[8 + j] = _mm512_shuffle_i32x4(a, c, 0xDD);
    s.lines[4 + j] = _mm512_shuffle_i32x4(b, d, 0x88);
    s.lines[12 + j] = _mm512_shuffle_i32x4(b, d, 0xDD);
  }
}

// `lines_of_rows`: in a's layout, otherwise in b's.
template <bool lines_of_rows>
KINTSUGI_AVX512 void pack(const Bf16Panel& panel, bf16* to) {
  const bool rows = panel.k_stride == 1 || panel.k == 1;
  for (int64_t l = 0; l < panel.k; l += 2 * kSide)
    for (int64_t i = 0; i < kTile; i += kSide, to += kSquare) {
      const bf16* from = panel.from + i * panel.stride + l * panel.k_stride;
      const int64_t count = std::min(kSide, panel.count - i), n = std::min(2 * kSide, panel.k - l);
      Square square;
      if (rows) {
        load_rows(from, panel.stride, count, n, square);
      } else {
        load_pairs(from, panel.k_stride, count, n, square);
      }
      if (rows != lines_of_rows) transpose(square);
      for (int64_t j = 0; j < kSide; ++j) _mm512_storeu_si512(to + j * 2 * kSide, square.lines[j]);
    }
}

}  // namespace

void pack_a_avx512(const Bf16Panel& panel, bf16* to) {
  pack<true>(panel, to);
}
void pack_b_avx512(const Bf16Panel& panel, bf16* to) {
  pack<false>(panel, to);
}

}  // namespace kintsugi::kernels::cpu
#endif
