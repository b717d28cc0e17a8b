#include "kintsugi/kernels/cpu/thin.h"

#include <algorithm>

#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/thin.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

constexpr int64_t kAhead = 16;  // rows of b, or columns, that are fetched before they are used

// One row of c from rows of b: eight rows of b at a time, so that c is read and written seldom.
void row_times_rows(const Product& p, int64_t i, bool add) {
  const float* a = p.a + i * p.a_row;
  float* c = p.c + i * p.c_row;
  const int64_t N = lanes();
  for (int64_t l = 0; l < p.k; l += 8) {
    const int64_t some = p.k - l < 8 ? p.k - l : 8;
    const bool from_c = add || l > 0;
    const float* b = p.b + l * p.b_row;
    const int64_t ahead = std::min(kAhead, p.k - l - some) * p.b_row;
    int64_t j = 0;
    for (; j + N <= p.n; j += N) {
      for (int64_t r = 0; r < some; ++r) fetch_second(b + ahead + r * p.b_row + j);
      V sum = from_c ? load(c + j) : zero();
      for (int64_t r = 0; r < some; ++r) sum = hn::MulAdd(set(a[(l + r) * p.a_column]), load(b + r * p.b_row + j), sum);
      store(sum, c + j);
    }
    for (; j < p.n; ++j) {
      float sum = from_c ? c[j] : 0.0f;
      for (int64_t r = 0; r < some; ++r) sum += a[(l + r) * p.a_column] * b[r * p.b_row + j];
      c[j] = sum;
    }
  }
}

// One row of c from rows of b's transpose: dot products, four at a time.
void row_times_columns(const Product& p, int64_t i, bool add) {
  const float* a = p.a + i * p.a_row;
  float* c = p.c + i * p.c_row;
  const int64_t N = lanes();
  for (int64_t j = 0; j < p.n; j += 4) {
    const int64_t some = p.n - j < 4 ? p.n - j : 4;
    const float* b0 = p.b + j * p.b_column;
    const float *b1 = b0 + (some > 1 ? p.b_column : 0), *b2 = b0 + (some > 2 ? 2 * p.b_column : 0),
                *b3 = b0 + (some > 3 ? 3 * p.b_column : 0);
    const int64_t ahead = std::min(kAhead, p.n - j - some) * p.b_column;
    V s0 = zero(), s1 = zero(), s2 = zero(), s3 = zero();
    int64_t l = 0;
    for (; l + N <= p.k; l += N) {
      for (const float* row : {b0, b1, b2, b3}) fetch_second(row + ahead + l);
      const V x = load(a + l);
      s0 = hn::MulAdd(x, load(b0 + l), s0);
      s1 = hn::MulAdd(x, load(b1 + l), s1);
      s2 = hn::MulAdd(x, load(b2 + l), s2);
      s3 = hn::MulAdd(x, load(b3 + l), s3);
    }
    float dots[4] = {sum_of_lanes(s0), sum_of_lanes(s1), sum_of_lanes(s2), sum_of_lanes(s3)};
    for (; l < p.k; ++l) {
      dots[0] += a[l] * b0[l], dots[1] += a[l] * b1[l], dots[2] += a[l] * b2[l], dots[3] += a[l] * b3[l];
    }
    for (int64_t r = 0; r < some; ++r) c[j + r] = add ? c[j + r] + dots[r] : dots[r];
  }
}

void thin(const Product& p, bool add) {
  for (int64_t i = 0; i < p.m; ++i) {
    if (p.b_column == 1) {
      row_times_rows(p, i, add);
    } else {
      row_times_columns(p, i, add);
    }
  }
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
