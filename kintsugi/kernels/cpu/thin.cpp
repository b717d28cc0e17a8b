#include "kintsugi/kernels/cpu/thin.h"

#include <algorithm>

#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/thin.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

constexpr int64_t kRowsOfB = 8;           // whose products are added at a time, so that c is read and written seldom
constexpr int64_t kAhead = 2 * kRowsOfB;  // rows that are fetched before they are used

// Rows of c from rows of b.
void add_rows(const Product& p, bool add) {
  for (int64_t l = 0; l < p.k; l += kRowsOfB) {
    const int64_t some = std::min(kRowsOfB, p.k - l), ahead = std::min(kAhead, p.k - l - some) * p.b_row;
    const bool from_c = add || l > 0;
    const float *a = p.a + l * p.a_column, *b = p.b + l * p.b_row;
    int64_t j = 0;
    for (; j + lanes() <= p.n; j += lanes()) {
      for (int64_t r = 0; r < some; ++r) fetch_second(b + ahead + r * p.b_row + j);
      for (int64_t i = 0; i < p.m; ++i) {
        V sum = from_c ? load(p.c + i * p.c_row + j) : zero();
        for (int64_t r = 0; r < some; ++r)
          sum = hn::MulAdd(set(a[i * p.a_row + r * p.a_column]), load(b + r * p.b_row + j), sum);
        store(sum, p.c + i * p.c_row + j);
      }
    }
    for (; j < p.n; ++j)
      for (int64_t i = 0; i < p.m; ++i) {
        float sum = from_c ? p.c[i * p.c_row + j] : 0.0f;
        for (int64_t r = 0; r < some; ++r) sum += a[i * p.a_row + r * p.a_column] * b[r * p.b_row + j];
        p.c[i * p.c_row + j] = sum;
      }
  }
}

// The same, where columns of b lie side by side over k: dot products.
void add_columns(const Product& p, bool add) {
  for (int64_t j = 0; j < p.n; ++j)
    for (int64_t i = 0; i < p.m; ++i) {
      const float sum = dot(p.a + i * p.a_row, p.b + j * p.b_column, p.k);
      p.c[i * p.c_row + j] = add ? p.c[i * p.c_row + j] + sum : sum;
    }
}

void thin(const Product& p, bool add) {
  (p.b_column == 1 ? add_rows : add_columns)(p, add);
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(thin);

bool is_thin(const Product& p) {
  return p.m <= 4 && (p.b_column == 1 || (p.b_row == 1 && (p.a_column == 1 || p.k == 1)));
}

void multiply_thin(const Product& p, bool add) {
  HWY_DYNAMIC_DISPATCH(thin)(p, add);
}

}  // namespace kintsugi::kernels::cpu
#endif
