#include "kintsugi/kernels/cpu/thin.h"

#include <algorithm>

#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/thin.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/thin-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

Thin<float> thin_of(const Product& p) {
  return {p.m, p.n, p.k, p.b, p.b_row};
}

ThinRows rows_of_a(const Product& p, int64_t l) {
  return {p.a + l * p.a_column, p.a_row, p.a_column};
}

void sum_rows(const Product& p, bool add) {
  float more[kThinRows * kThinColumns];
  for (int64_t first = 0; first < p.n; first += kThinColumns) {
    const base::Range columns = {first, std::min(first + kThinColumns, p.n)};
    for (int64_t l = 0; l < p.k; l += thin_slice(p.k)) {
      const base::Range rows = {l, std::min(l + thin_slice(p.k), p.k)};
      const bool adds = add || l > 0;
      sum_slice(thin_of(p), rows, columns, rows_of_a(p, l),
                adds ? ThinSums{more, kThinColumns} : ThinSums{p.c + first, p.c_row});
      for (int64_t i = 0; adds && i < p.m; ++i)
        add_sums(more + i * kThinColumns, columns.size(), p.c + i * p.c_row + first);
    }
  }
}

void sum_columns(const Product& p, bool add) {
  float sums[kThinRows];
  for (int64_t j = 0; j < p.n; ++j) {
    sum_column(p.m, p.a, p.a_row, p.b + j * p.b_column, p.k, sums);
    for (int64_t i = 0; i < p.m; ++i) {
      float& c = p.c[i * p.c_row + j];
      c = add ? c + sums[i] : sums[i];
    }
  }
}

void thin(const Product& p, bool add) {
  (p.b_column == 1 ? sum_rows : sum_columns)(p, add);
}

void thin_parts(const Product& p, base::Range parts, float* sums) {
  sum_slices(
      thin_of(p), parts, [&](base::Range rows) { return rows_of_a(p, rows.begin); }, sums);
}

void thin_join(const Product& p, base::Range columns, bool add, const float* sums) {
  for (int64_t s = 0; s < thin_slices(p.k); ++s)
    for (int64_t i = 0; i < p.m; ++i) {
      const float* from = sums + (s * p.m + i) * p.n + columns.begin;
      float* c = p.c + i * p.c_row + columns.begin;
      if (add || s > 0) {
        add_sums(from, columns.size(), c);
      } else {
        std::copy_n(from, columns.size(), c);
      }
    }
  if (p.epilogue) apply(p.epilogue, columns.begin, p.m, p.c_row, columns.size());
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(thin);
HWY_EXPORT(thin_parts);
HWY_EXPORT(thin_join);

bool is_thin(const Product& p) {
  return p.m <= kThinRows && (p.b_column == 1 || (p.b_row == 1 && (p.a_column == 1 || p.k == 1)));
}

void multiply_thin(const Product& p, bool add) {
  HWY_DYNAMIC_DISPATCH(thin)(p, add);
}

void multiply_thin(const Product& p, bool add, float* sums, base::ThreadTeam& team) {
  team.for_shares(thin_slices(p.k) * thin_parts_of_slice(p.n), 1, [&](base::Range parts, int) {
    HWY_DYNAMIC_DISPATCH(thin_parts)(p, parts, sums);
  });
  team.for_shares(p.n, kThinGrain, [&](base::Range columns, int) {
    HWY_DYNAMIC_DISPATCH(thin_join)(p, columns, add, sums);
  });
}

}  // namespace kintsugi::kernels::cpu
#endif
