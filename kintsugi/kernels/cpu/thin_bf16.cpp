#include "kintsugi/kernels/cpu/thin_bf16.h"

#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/cpu/bf16_finish.h"
#include "kintsugi/kernels/cpu/bf16_unit.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/thin_bf16.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/thin-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

Thin<tensor::bf16> thin_of(const Bf16Product& p) {
  return {p.m, p.n, p.k, p.b, p.b_row};
}

void sum_columns(const Bf16Product& p, const float* a, base::Range columns, float* to) {
  float sums[kThinRows];
  for (int64_t j = columns.begin; j < columns.end; ++j) {
    sum_column(p.m, a, p.k, p.b + j * p.b_column, p.k, sums);
    for (int64_t i = 0; i < p.m; ++i) to[i * kThinColumns + j - columns.begin] = sums[i];
  }
}

void widen_a(const Bf16Product& p, base::Range rows, float* a) {
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t l = rows.begin; l < rows.end; ++l)
      a[i * rows.size() + l - rows.begin] = static_cast<float>(p.a[i * p.a_row + l * p.a_column]);
}

// Stores columns of c from their sums, with rows `row` apart.
void finish(const Bf16Product& p, base::Range columns, const float* sums, int64_t row) {
  for (int64_t j = 0; j < columns.size(); j += kTile) {
    const int64_t width = std::min(kTile, columns.size() - j);
    float tile[kThinRows * kTile];
    for (int64_t i = 0; i < p.m; ++i) std::copy_n(sums + i * row + j, width, tile + i * kTile);
    finish_tile(p, tile, 0, columns.begin + j, p.m, width);
    if (p.epilogue) apply(p.epilogue, columns.begin + j, p.m, p.c_row, width);
  }
}

void bf16_columns(const Bf16Product& p, base::Range all, float* scratch) {
  float *a = scratch, *sums = a + kThinRows * p.k, *more = sums + kThinRows * kThinColumns;
  widen_a(p, {0, p.k}, a);
  for (int64_t first = all.begin; first < all.end; first += kThinColumns) {
    const base::Range columns = {first, std::min(first + kThinColumns, all.end)};
    if (p.b_column != 1) sum_columns(p, a, columns, sums);
    for (int64_t l = 0; p.b_column == 1 && l < p.k; l += thin_slice(p.k)) {
      const base::Range rows = {l, std::min(l + thin_slice(p.k), p.k)};
      sum_slice(thin_of(p), rows, columns, {a + l, p.k, 1}, {l > 0 ? more : sums, kThinColumns});
      for (int64_t i = 0; l > 0 && i < p.m; ++i)
        add_sums(more + i * kThinColumns, columns.size(), sums + i * kThinColumns);
    }
    finish(p, columns, sums, kThinColumns);
  }
}

void bf16_parts(const Bf16Product& p, base::Range parts, float* a, float* sums) {
  const auto widened = [&](base::Range rows) {
    widen_a(p, rows, a);
    return ThinRows{a, rows.size(), 1};
  };
  sum_slices(thin_of(p), parts, widened, sums);
}

void bf16_join(const Bf16Product& p, base::Range columns, float* sums) {
  for (int64_t s = 1; s < thin_slices(p.k); ++s)
    for (int64_t i = 0; i < p.m; ++i)
      add_sums(sums + (s * p.m + i) * p.n + columns.begin, columns.size(), sums + i * p.n + columns.begin);
  finish(p, columns, sums + columns.begin, p.n);
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(bf16_columns);
HWY_EXPORT(bf16_parts);
HWY_EXPORT(bf16_join);

bool is_thin(const Bf16Product& p) {
  return p.m <= kThinRows && p.k > 0 && (p.b_column == 1 || p.b_row == 1 || p.k == 1);
}

int64_t thin_scratch(int64_t k) {
  return kThinRows * (k + 2 * kThinColumns);
}

float* thin_scratch_of(const Bf16Scratch& scratch, int thread) {
  return reinterpret_cast<float*>(scratch.threads + thread * scratch.thread_size);
}

int64_t thin_sums(const Bf16Product& p) {
  return is_thin(p) && p.b_column == 1 ? thin_sums(p.m, p.n, p.k) : 0;
}

void multiply_thin(const Bf16Product& p, base::Range columns, float* scratch) {
  HWY_DYNAMIC_DISPATCH(bf16_columns)(p, columns, scratch);
}

void multiply_thin(const Bf16Product& p, const Bf16Scratch& scratch, base::ThreadTeam& team) {
  const int64_t size = thin_sums(p);
  if (size == 0 || size > scratch.sums_size)
    return team.for_shares(p.n, kTile, [&](base::Range columns, int thread) {
      multiply_thin(p, columns, thin_scratch_of(scratch, thread));
    });
  team.for_shares(thin_slices(p.k) * thin_parts_of_slice(p.n), 1, [&](base::Range parts, int thread) {
    HWY_DYNAMIC_DISPATCH(bf16_parts)(p, parts, thin_scratch_of(scratch, thread), scratch.sums);
  });
  team.for_shares(p.n, kThinGrain, [&](base::Range columns, int) {
    HWY_DYNAMIC_DISPATCH(bf16_join)(p, columns, scratch.sums);
  });
}

}  // namespace kintsugi::kernels::cpu
#endif
