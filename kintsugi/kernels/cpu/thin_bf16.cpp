#include "kintsugi/kernels/cpu/thin_bf16.h"

#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/cpu/bf16_finish.h"
#include "kintsugi/kernels/cpu/bf16_unit.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/thin_bf16.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

constexpr int64_t kRowsOfB = 8;           // whose products are added at a time
constexpr int64_t kAhead = 2 * kRowsOfB;  // rows that are fetched before they are used
constexpr int64_t kOfLine = 64 / sizeof(tensor::bf16);

// Adds rows of b, `count` of them from row l on, to the sums of columns from `first` on. a is [m k], sums
// [m kThinColumns].
template <int kCount>
void add_rows(const Bf16Product& p, const float* a, int64_t l, int64_t first, int64_t columns, float* sums) {
  const tensor::bf16* b = p.b + l * p.b_row + first;
  const int64_t ahead = std::min(kAhead, p.k - l - kCount) * p.b_row;
  int64_t j = 0;
  for (; j + lanes() <= columns; j += lanes()) {
    V x[kCount];
    if (j % kOfLine == 0)
      for (int r = 0; r < kCount; ++r) fetch_second(b + ahead + r * p.b_row + j);
    HWY_UNROLL(8)
    for (int r = 0; r < kCount; ++r) x[r] = load(b + r * p.b_row + j);
    for (int64_t i = 0; i < p.m; ++i) {
      V sum = l > 0 ? load(sums + i * kThinColumns + j) : zero();
      HWY_UNROLL(8)
      for (int r = 0; r < kCount; ++r) sum = hn::MulAdd(set(a[i * p.k + l + r]), x[r], sum);
      store(sum, sums + i * kThinColumns + j);
    }
  }
  for (; j < columns; ++j)
    for (int64_t i = 0; i < p.m; ++i) {
      float sum = l > 0 ? sums[i * kThinColumns + j] : 0.0f;
      for (int r = 0; r < kCount; ++r) sum = std::fma(a[i * p.k + l + r], static_cast<float>(b[r * p.b_row + j]), sum);
      sums[i * kThinColumns + j] = sum;
    }
}

void sum_rows(const Bf16Product& p, const float* a, int64_t first, int64_t columns, float* sums) {
  int64_t l = 0;
  for (; l + kRowsOfB <= p.k; l += kRowsOfB) add_rows<kRowsOfB>(p, a, l, first, columns, sums);
  for (; l < p.k; ++l) add_rows<1>(p, a, l, first, columns, sums);
}

// Columns of b lie side by side over k: dot products, one after the other, so that b is read as it lies in memory.
void sum_columns(const Bf16Product& p, const float* a, int64_t first, int64_t columns, float* sums) {
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < p.m; ++i)
      sums[i * kThinColumns + j] = dot(a + i * p.k, p.b + (first + j) * p.b_column, p.k);
}

void thin_bf16(const Bf16Product& p, base::Range columns, float* scratch) {
  float *a = scratch, *sums = a + kThinRows * p.k;
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t l = 0; l < p.k; ++l) a[i * p.k + l] = static_cast<float>(p.a[i * p.a_row + l * p.a_column]);
  for (int64_t first = columns.begin; first < columns.end; first += kThinColumns) {
    const int64_t some = std::min(kThinColumns, columns.end - first);
    (p.b_column == 1 ? sum_rows : sum_columns)(p, a, first, some, sums);
    for (int64_t j = 0; j < some; j += kTile) {
      const int64_t width = std::min(kTile, some - j);
      float tile[kThinRows * kTile];
      for (int64_t i = 0; i < p.m; ++i) std::copy_n(sums + i * kThinColumns + j, width, tile + i * kTile);
      finish_tile(p, tile, 0, first + j, p.m, width);
      if (p.epilogue) apply(p.epilogue, first + j, p.m, p.c_row, width);
    }
  }
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(thin_bf16);

bool is_thin(const Bf16Product& p) {
  return p.m <= kThinRows && p.k > 0 && (p.b_column == 1 || p.b_row == 1 || p.k == 1);
}

int64_t thin_scratch(int64_t k) {
  return kThinRows * (k + kThinColumns);
}

void multiply_thin(const Bf16Product& p, base::Range columns, float* scratch) {
  HWY_DYNAMIC_DISPATCH(thin_bf16)(p, columns, scratch);
}

}  // namespace kintsugi::kernels::cpu
#endif
