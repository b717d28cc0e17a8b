// Blocks of a and b are packed for the caches, and multiplied in tiles of registers (Goto, van de Geijn 2008, "Anatomy
// of high-performance matrix multiplication", sections 4 and 5).
#include "kintsugi/kernels/cpu/gemm_fp64.h"

#include <algorithm>
#include <vector>

#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/gemm_fp64.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

#ifndef KINTSUGI_GEMM_FP64
#define KINTSUGI_GEMM_FP64
namespace kintsugi::kernels::cpu {

constexpr int64_t kWideRows = 6;  // of a tile
// Of a block: a's [96 256] fits the L2 cache, the columns of b for one tile fit L1.
constexpr int64_t kWideDepth = 256, kWideBlockRows = 96, kWideBlockColumns = 512;

}  // namespace kintsugi::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

using DW = hn::ScalableTag<double>;
using VW = hn::Vec<DW>;
constexpr int64_t kMaxWideColumns = 2 * HWY_MAX_BYTES / 8;

int64_t tile_columns() {
  return 2 * static_cast<int64_t>(hn::Lanes(DW()));
}

// sums [6 columns] = a [k 6] transposed * b [k columns], both packed.
void wide_tile(int64_t k, const double* a, const double* b, double* sums) {
  const DW d;
  const size_t N = hn::Lanes(d);
  VW s[kWideRows][2];
  HWY_UNROLL(6)
  for (int r = 0; r < kWideRows; ++r) s[r][0] = s[r][1] = hn::Zero(d);
  for (int64_t l = 0; l < k; ++l, a += kWideRows, b += 2 * N) {
    const VW b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + N);
    HWY_UNROLL(6)
    for (int r = 0; r < kWideRows; ++r) {
      const VW x = hn::Set(d, a[r]);
      s[r][0] = hn::MulAdd(x, b0, s[r][0]);
      s[r][1] = hn::MulAdd(x, b1, s[r][1]);
    }
  }
  HWY_UNROLL(6)
  for (int r = 0; r < kWideRows; ++r) {
    hn::StoreU(s[r][0], d, sums + 2 * N * r);
    hn::StoreU(s[r][1], d, sums + 2 * N * r + N);
  }
}

// Packs [count depth] of x in groups of `width`: [count / width, depth, width], with zeros up to a whole group. An
// element is at i * step + l * along.
void pack(const double* x, int64_t step, int64_t along, int64_t count, int64_t depth, int64_t width, double* to) {
  for (int64_t first = 0; first < count; first += width) {
    const int64_t here = std::min(width, count - first);
    const double* from = x + first * step;
    for (int64_t l = 0; l < depth; ++l, from += along, to += width) {
      for (int64_t i = 0; i < here; ++i) to[i] = from[i * step];
      for (int64_t i = here; i < width; ++i) to[i] = 0.0;
    }
  }
}

void multiply_block(const WideProduct& p, base::Range rows, base::Range columns) {
  if (p.k == 0 && !p.accumulate)
    for (int64_t i = rows.begin; i < rows.end; ++i) std::fill_n(p.c + i * p.c_row + columns.begin, columns.size(), 0.0);
  const int64_t width = tile_columns(), depth = std::min(p.k, kWideDepth);
  const auto padded = [](int64_t n, int64_t to) { return (n + to - 1) / to * to; };
  std::vector<double> a(static_cast<size_t>(padded(std::min(rows.size(), kWideBlockRows), kWideRows) * depth));
  std::vector<double> b(static_cast<size_t>(padded(std::min(columns.size(), kWideBlockColumns), width) * depth));
  double sums[kWideRows * kMaxWideColumns];
  for (int64_t j0 = columns.begin; j0 < columns.end; j0 += kWideBlockColumns) {
    const int64_t n = std::min(kWideBlockColumns, columns.end - j0);
    for (int64_t l0 = 0; l0 < p.k; l0 += kWideDepth) {
      const int64_t k = std::min(kWideDepth, p.k - l0);
      const bool add = p.accumulate || l0 > 0;
      pack(p.b + l0 * p.b_row + j0 * p.b_column, p.b_column, p.b_row, n, k, width, b.data());
      for (int64_t i0 = rows.begin; i0 < rows.end; i0 += kWideBlockRows) {
        const int64_t m = std::min(kWideBlockRows, rows.end - i0);
        pack(p.a + i0 * p.a_row + l0 * p.a_column, p.a_row, p.a_column, m, k, kWideRows, a.data());
        for (int64_t j = 0; j < n; j += width)
          for (int64_t i = 0; i < m; i += kWideRows) {
            wide_tile(k, a.data() + i * k, b.data() + j * k, sums);
            const int64_t high = std::min(kWideRows, m - i), wide = std::min(width, n - j);
            for (int64_t r = 0; r < high; ++r) {
              double* c = p.c + (i0 + i + r) * p.c_row + j0 + j;
              const double* s = sums + r * width;
              for (int64_t q = 0; q < wide; ++q) c[q] = add ? c[q] + s[q] : s[q];
            }
          }
      }
    }
  }
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(multiply_block);

void multiply(const WideProduct& p) {
  if (p.m > 0 && p.n > 0) HWY_DYNAMIC_DISPATCH(multiply_block)(p, {0, p.m}, {0, p.n});
}

void multiply(const WideProduct& p, base::ThreadTeam& team) {
  constexpr int64_t kColumns = 16, kSmall = int64_t{1} << 16;  // the columns of a tile of any target
  if (p.m * p.n * p.k < kSmall || team.size() == 1) return multiply(p);
  const auto block = HWY_DYNAMIC_DISPATCH(multiply_block);
  if (p.m >= p.n) {
    team.for_shares(p.m, kWideRows, [&](base::Range rows, int) { block(p, rows, {0, p.n}); });
  } else {
    team.for_shares(p.n, kColumns, [&](base::Range columns, int) { block(p, {0, p.m}, columns); });
  }
}

}  // namespace kintsugi::kernels::cpu
#endif
