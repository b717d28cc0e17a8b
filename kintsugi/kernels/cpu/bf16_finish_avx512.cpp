#include "kintsugi/kernels/cpu/bf16_finish.h"
#include "kintsugi/kernels/cpu/bf16_unit.h"

#if defined(__x86_64__)
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // a warning in g++ 12's own headers
#endif
#include <immintrin.h>

#include <algorithm>

#define KINTSUGI_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace kintsugi::kernels::cpu {
namespace {

using tensor::DType;

constexpr int64_t kLanes = 16;

KINTSUGI_AVX512 inline __m512 load(const std::byte* from, DType dtype, int64_t at, __mmask16 mask) {
  if (dtype == DType::f32) return _mm512_maskz_loadu_ps(mask, from + at * 4);
  const __m256i bits = _mm256_maskz_loadu_epi16(mask, from + at * 2);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

KINTSUGI_AVX512 inline void store(__m512 x, std::byte* to, DType dtype, int64_t at, __mmask16 mask) {
  if (dtype == DType::f32) return _mm512_mask_storeu_ps(to + at * 4, mask, x);
  _mm256_mask_storeu_epi16(to + at * 2, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
}

constexpr int64_t kLine = 64;

// Both halves of a row of a full tile.
struct Row {
  __m512 left, right;
};

KINTSUGI_AVX512 inline void add(const std::byte* from, DType dtype, Row& row) {
  row.left = _mm512_add_ps(row.left, load(from, dtype, 0, 0xFFFF));
  row.right = _mm512_add_ps(row.right, load(from, dtype, kLanes, 0xFFFF));
}

enum class Place : uint8_t { narrow, wide, past_caches };  // of c: bf16, fp32, and fp32 with nontemporal stores

template <Place place>
KINTSUGI_AVX512 inline void store(const Row& row, std::byte* to) {
  if constexpr (place == Place::narrow) {
    _mm512_storeu_si512(to, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(row.right, row.left)));
  } else if constexpr (place == Place::past_caches) {
    _mm512_stream_ps(reinterpret_cast<float*>(to), row.left);
    _mm512_stream_ps(reinterpret_cast<float*>(to + kLine), row.right);
  } else {
    _mm512_storeu_ps(to, row.left);
    _mm512_storeu_ps(to + kLine, row.right);
  }
}

// A full tile. `c` and `bias`, if any, point to its first element.
template <Place place>
KINTSUGI_AVX512 void finish_whole(const Bf16Product& p, const float* tile, const std::byte* bias, std::byte* c) {
  constexpr DType kOfC = place == Place::narrow ? DType::bf16 : DType::f32;
  const int64_t row_bytes = p.c_row * (place == Place::narrow ? 2 : 4),
                bias_bytes = p.bias.row * tensor::size_of(p.bias.dtype);
  const DType of_bias = p.bias.dtype;
  const bool adds = p.accumulate;
  for (int64_t i = 0; i < kTile; ++i, tile += kTile, c += row_bytes) {
    Row row = {_mm512_loadu_ps(tile), _mm512_loadu_ps(tile + kLanes)};
    if (bias) add(bias + i * bias_bytes, of_bias, row);
    if (adds) add(c, kOfC, row);
    store<place>(row, c);
  }
}

}  // namespace

KINTSUGI_AVX512 void finish_tile_avx512(const Bf16Product& p, const float* tile, int64_t row, int64_t column,
                                        int64_t rows, int64_t columns) {
  if (p.bias.data && p.bias.column != 1) return finish_tile(p, tile, row, column, rows, columns);
  if (rows == kTile && columns == kTile) {
    const std::byte* bias = p.bias.data;
    if (bias) bias += (row * p.bias.row + column) * tensor::size_of(p.bias.dtype);
    std::byte* c = p.c + (row * p.c_row + column) * tensor::size_of(p.c_dtype);
    const bool narrow = p.c_dtype == DType::bf16;
    if (narrow) return finish_whole<Place::narrow>(p, tile, bias, c);
    return goes_past_caches(p) ? finish_whole<Place::past_caches>(p, tile, bias, c)
                               : finish_whole<Place::wide>(p, tile, bias, c);
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; j += kLanes) {
      const __mmask16 mask = static_cast<__mmask16>((1u << std::min(kLanes, columns - j)) - 1);
      const int64_t at = (row + i) * p.c_row + column + j;
      __m512 x = _mm512_loadu_ps(tile + i * kTile + j);
      if (p.bias.data) x = _mm512_add_ps(x, load(p.bias.data, p.bias.dtype, (row + i) * p.bias.row + column + j, mask));
      if (p.accumulate) x = _mm512_add_ps(x, load(p.c, p.c_dtype, at, mask));
      store(x, p.c, p.c_dtype, at, mask);
    }
}

}  // namespace kintsugi::kernels::cpu
#endif
