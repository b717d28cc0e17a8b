// Matmuls with few rows, by slices of k, once per SIMD target: fp32 (thin.cpp) and bf16 (thin_bf16.cpp).
#if defined(KINTSUGI_THIN_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef KINTSUGI_THIN_INL
#undef KINTSUGI_THIN_INL
#else
#define KINTSUGI_THIN_INL
#endif

#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/cpu/simd-inl.h"
#include "kintsugi/kernels/cpu/thin.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

constexpr int64_t kRowsOfB = 8;           // rows of b processed at a time
constexpr int64_t kAhead = 4 * kRowsOfB;  // rows to prefetch
constexpr int64_t kRowsBoundByMemory = 2;
constexpr int64_t kSumsAtATime = 4096;  // 16 KiB

// b is [k n] with contiguous columns; m rows of a, in fp32, are multiplied by it.
template <typename T>
struct Thin {
  int64_t m, n, k;
  const T* b;
  int64_t b_row;
};

// Rows of a, from the first column of a slice.
struct ThinRows {
  const float* a;
  int64_t row, column;
};

// The sums over a slice of k, [m columns].
struct ThinSums {
  float* sums;
  int64_t row;
};

// Adds `kCount` rows of b from row l of the slice.
template <int kCount, typename T>
void add_rows(const Thin<T>& p, base::Range rows, base::Range columns, const ThinRows& a, const ThinSums& to,
              int64_t l) {
  constexpr int64_t kOfLine = 64 / sizeof(T);
  const int64_t m = p.m, n = columns.size(), b_row = p.b_row, to_row = to.row;
  const T* b = p.b + (rows.begin + l) * b_row + columns.begin;
  const int64_t ahead = std::min(kAhead, p.k - rows.begin - l - kCount) * b_row;
  float* const sums = to.sums;
  float by[kThinRows][kCount];
  for (int64_t i = 0; i < m; ++i)
    for (int r = 0; r < kCount; ++r) by[i][r] = a.a[i * a.row + (l + r) * a.column];
  int64_t j = 0;
  for (; j + lanes() <= n; j += lanes()) {
    V x[kCount];
    if (j % kOfLine == 0)
      for (int r = 0; r < kCount; ++r) fetch_second(b + ahead + r * b_row + j);
    HWY_UNROLL(8)
    for (int r = 0; r < kCount; ++r) x[r] = load(b + r * b_row + j);
    for (int64_t i = 0; i < m; ++i) {
      V sum = l > 0 ? load(sums + i * to_row + j) : zero();
      HWY_UNROLL(8)
      for (int r = 0; r < kCount; ++r) sum = hn::MulAdd(set(by[i][r]), x[r], sum);
      store(sum, sums + i * to_row + j);
    }
  }
  for (; j < n; ++j)
    for (int64_t i = 0; i < m; ++i) {
      float sum = l > 0 ? sums[i * to_row + j] : 0.0f;
      for (int r = 0; r < kCount; ++r) sum = std::fma(by[i][r], static_cast<float>(b[r * b_row + j]), sum);
      sums[i * to_row + j] = sum;
    }
}

// Few rows are bound by memory, and read b's rows as far as they are contiguous; more rows are bound by their sums, of
// which as many columns are computed at a time as fit the L1 cache.
template <typename T>
void sum_slice(const Thin<T>& p, base::Range rows, base::Range columns, const ThinRows& a, const ThinSums& to) {
  const int64_t width = p.m <= kRowsBoundByMemory ? columns.size() : kSumsAtATime / p.m / kThinGrain * kThinGrain;
  for (int64_t first = 0; first < columns.size(); first += width) {
    const base::Range some = {columns.begin + first, columns.begin + std::min(first + width, columns.size())};
    const ThinSums sums = {to.sums + first, to.row};
    int64_t l = 0;
    for (; l + kRowsOfB <= rows.size(); l += kRowsOfB) add_rows<kRowsOfB>(p, rows, some, a, sums, l);
    for (; l < rows.size(); ++l) add_rows<1>(p, rows, some, a, sums, l);
  }
}

// The dot products of m rows of a with one column of b, contiguous along k.
template <typename T>
void sum_column(int64_t m, const float* a, int64_t a_row, const T* column, int64_t k, float* sums) {
  constexpr int kRows = HWY_MAX_BYTES >= 64 ? 4 : 2;  // rows per load of the column, limited by registers
  int64_t i = 0;
  for (; i + kRows <= m; i += kRows) dots<kRows>(a + i * a_row, a_row, column, k, sums + i);
  for (; i < m; ++i) dots<1>(a + i * a_row, a_row, column, k, sums + i);
}

HWY_INLINE void add_sums(const float* x, int64_t n, float* sum) {
  map([](V a, V b) { return hn::Add(a, b); }, n, sum, sum, x);
}

// Parts of [slice, kThinGrain columns], in order, so that b is read in memory order. sums is [slice m n]; a_of(rows)
// gives a's rows.
template <typename T, typename F>
void sum_slices(const Thin<T>& p, base::Range parts, const F& a_of, float* sums) {
  const int64_t slice = thin_slice(p.k), of_slice = thin_parts_of_slice(p.n);
  for (int64_t at = parts.begin; at < parts.end;) {
    const int64_t s = at / of_slice, end = std::min(parts.end, (s + 1) * of_slice);
    const base::Range rows = {s * slice, std::min((s + 1) * slice, p.k)};
    const base::Range columns = {(at - s * of_slice) * kThinGrain, std::min((end - s * of_slice) * kThinGrain, p.n)};
    sum_slice(p, rows, columns, a_of(rows), {sums + s * p.m * p.n + columns.begin, p.n});
    at = end;
  }
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
