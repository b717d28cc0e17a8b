// Matmuls of small fp32 tiles in the caches, once per SIMD target.
#if defined(KINTSUGI_TILE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KINTSUGI_TILE_INL
#undef KINTSUGI_TILE_INL
#else
#define KINTSUGI_TILE_INL
#endif

#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

// A matrix whose element [i, j] is at i * row + j * column.
struct Tile {
  const float* data;
  int64_t row, column;
};

// c (+)= a * b for kRows rows and two vectors of columns, in registers. b and c are row-major.
template <int kRows>
HWY_INLINE void micro_tile(int64_t k, Tile a, const float* b, int64_t b_row, float* c, int64_t c_row, bool add) {
  const int64_t N = lanes();
  V s00 = zero(), s01 = zero(), s10 = zero(), s11 = zero(), s20 = zero(), s21 = zero();
  V s30 = zero(), s31 = zero(), s40 = zero(), s41 = zero(), s50 = zero(), s51 = zero();
  if (add) {
    s00 = load(c), s01 = load(c + N);
    if constexpr (kRows > 1) s10 = load(c + c_row), s11 = load(c + c_row + N);
    if constexpr (kRows > 2) s20 = load(c + 2 * c_row), s21 = load(c + 2 * c_row + N);
    if constexpr (kRows > 3) s30 = load(c + 3 * c_row), s31 = load(c + 3 * c_row + N);
    if constexpr (kRows > 4) s40 = load(c + 4 * c_row), s41 = load(c + 4 * c_row + N);
    if constexpr (kRows > 5) s50 = load(c + 5 * c_row), s51 = load(c + 5 * c_row + N);
  }
  const float* x = a.data;
  for (int64_t l = 0; l < k; ++l, x += a.column, b += b_row) {
    const V b0 = load(b), b1 = load(b + N);
    V y = set(x[0]);
    s00 = hn::MulAdd(y, b0, s00), s01 = hn::MulAdd(y, b1, s01);
    if constexpr (kRows > 1) y = set(x[a.row]), s10 = hn::MulAdd(y, b0, s10), s11 = hn::MulAdd(y, b1, s11);
    if constexpr (kRows > 2) y = set(x[2 * a.row]), s20 = hn::MulAdd(y, b0, s20), s21 = hn::MulAdd(y, b1, s21);
    if constexpr (kRows > 3) y = set(x[3 * a.row]), s30 = hn::MulAdd(y, b0, s30), s31 = hn::MulAdd(y, b1, s31);
    if constexpr (kRows > 4) y = set(x[4 * a.row]), s40 = hn::MulAdd(y, b0, s40), s41 = hn::MulAdd(y, b1, s41);
    if constexpr (kRows > 5) y = set(x[5 * a.row]), s50 = hn::MulAdd(y, b0, s50), s51 = hn::MulAdd(y, b1, s51);
  }
  store(s00, c), store(s01, c + N);
  if constexpr (kRows > 1) store(s10, c + c_row), store(s11, c + c_row + N);
  if constexpr (kRows > 2) store(s20, c + 2 * c_row), store(s21, c + 2 * c_row + N);
  if constexpr (kRows > 3) store(s30, c + 3 * c_row), store(s31, c + 3 * c_row + N);
  if constexpr (kRows > 4) store(s40, c + 4 * c_row), store(s41, c + 4 * c_row + N);
  if constexpr (kRows > 5) store(s50, c + 5 * c_row), store(s51, c + 5 * c_row + N);
}

// c [m n] (+)= a [m k] * b [k n], n a multiple of two vectors; b and c row-major.
inline HWY_NOINLINE void multiply_tile(int64_t m, int64_t n, int64_t k, Tile a, const float* b, int64_t b_row, float* c,
                                       int64_t c_row, bool add) {
  for (int64_t j = 0; j < n; j += 2 * lanes()) {
    int64_t i = 0;
    for (; i + 6 <= m; i += 6) {
      micro_tile<6>(k, {a.data + i * a.row, a.row, a.column}, b + j, b_row, c + i * c_row + j, c_row, add);
    }
    const Tile rest{a.data + i * a.row, a.row, a.column};
    float* to = c + i * c_row + j;
    switch (m - i) {
      case 1:
        micro_tile<1>(k, rest, b + j, b_row, to, c_row, add);
        break;
      case 2:
        micro_tile<2>(k, rest, b + j, b_row, to, c_row, add);
        break;
      case 3:
        micro_tile<3>(k, rest, b + j, b_row, to, c_row, add);
        break;
      case 4:
        micro_tile<4>(k, rest, b + j, b_row, to, c_row, add);
        break;
      case 5:
        micro_tile<5>(k, rest, b + j, b_row, to, c_row, add);
        break;
      default:
        break;
    }
  }
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
