#include "kintsugi/kernels/cpu/gemm.h"

#include <algorithm>
#include <dnnl.hpp>

#include "kintsugi/base/error.h"
#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/cpu/library_calls.h"
#include "kintsugi/kernels/cpu/library_thread.h"
#include "kintsugi/kernels/cpu/thin.h"

namespace kintsugi::kernels::cpu {
namespace {

// The form in which sgemm takes a matrix [rows columns] of given strides.
struct Layout {
  char transposed;
  int64_t stride;
};

Layout layout_of(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  if (column == 1 || columns == 1) return {'N', std::max(rows == 1 ? columns : row, columns)};
  base::require(row == 1 || rows == 1, "gemm", "a matrix has strides {} and {}", row, column);
  return {'T', std::max(column, rows)};
}

void start_from_bias(const Product& p) {
  for (int64_t i = 0; i < p.m; ++i) {
    float* c = p.c + i * p.c_row;
    const float* bias = p.bias + i * p.bias_row;
    if (p.accumulate) {
      for (int64_t j = 0; j < p.n; ++j) c[j] += bias[j * p.bias_column];
    } else if (p.bias_column == 1) {
      std::copy_n(bias, p.n, c);
    } else {
      for (int64_t j = 0; j < p.n; ++j) c[j] = bias[j * p.bias_column];
    }
  }
}

// A nonzero key, equal for all matmuls that oneDNN treats alike.
uint64_t kind_of(const Product& p, const Layout& a, const Layout& b, bool add) {
  const uint64_t flags = 8 + (a.transposed == 'T') * 4 + (b.transposed == 'T') * 2 + add;
  uint64_t kind = flags;
  for (const int64_t size : {p.m, p.n, p.k}) {
    kind = (kind ^ static_cast<uint64_t>(size)) * 0x9E3779B97F4A7C15;  // odd, hence a bijection
    kind ^= kind >> 29;
  }
  return std::max<uint64_t>(kind, 1);
}

// Cost of a block: its multiplication and, for loading its operands, its edges.
struct Grid {
  int64_t rows, columns;
};

constexpr int64_t kRowGrain = 8, kColumnGrain = 16;

Grid grid_of(int64_t m, int64_t n, int threads) {
  Grid best{1, threads};
  double best_cost = 0;
  for (int64_t rows = 1; rows <= threads; ++rows) {
    if (threads % rows != 0) continue;
    const int64_t columns = threads / rows;
    const int64_t height = base::share(m, rows - 1, rows, kRowGrain).size();
    const int64_t width = base::share(n, columns - 1, columns, kColumnGrain).size();
    const double h = static_cast<double>(std::max(height, (m + rows - 1) / rows));
    const double w = static_cast<double>(std::max(width, (n + columns - 1) / columns));
    const double cost = h * w + 16 * (h + w);
    if (rows == 1 || cost < best_cost) best = {rows, columns}, best_cost = cost;
  }
  return best;
}

void multiply_alone(const Product& p) {
  if (p.bias) start_from_bias(p);
  const bool add = p.accumulate || p.bias;
  if (p.k == 0) {
    for (int64_t i = 0; i < p.m && !add; ++i) std::fill_n(p.c + i * p.c_row, p.n, 0.0f);
    return;
  }
  if (is_thin(p)) return multiply_thin(p, add);
  stay_on_this_thread();
  const Layout a = layout_of(p.m, p.k, p.a_row, p.a_column), b = layout_of(p.k, p.n, p.b_row, p.b_column);
  call_library(kind_of(p, a, b, add), [&] {
    const dnnl::status status = dnnl::sgemm(a.transposed, b.transposed, p.m, p.n, p.k, 1.0f, p.a, a.stride, p.b,
                                            b.stride, add ? 1.0f : 0.0f, p.c, std::max(p.c_row, p.n));
    if (status == dnnl::status::out_of_memory)
      throw base::UserError(
          "gemm", "oneDNN cannot allocate memory for a matmul of {} x {} x {}; a smaller train.micro_batch needs less",
          p.m, p.n, p.k);
    base::require(status == dnnl::status::success, "gemm", "oneDNN rejected a matmul of {} x {} x {}: status {}", p.m,
                  p.n, p.k, static_cast<int>(status));
  });
}

}  // namespace

void multiply(const Product& p) {
  if (p.m == 0 || p.n == 0) return;
  multiply_alone(p);
  if (p.epilogue) apply(p.epilogue, 0, p.m, p.c_row, p.n);
}

void multiply_share(const Product& p, int thread, int threads) {
  const Grid grid = grid_of(p.m, p.n, threads);
  const base::Range rows = base::share(p.m, thread / grid.columns, grid.rows, kRowGrain);
  const base::Range columns = base::share(p.n, thread % grid.columns, grid.columns, kColumnGrain);
  if (rows.size() == 0 || columns.size() == 0) return;
  Product mine = p;
  mine.m = rows.size();
  mine.n = columns.size();
  mine.a += rows.begin * p.a_row;
  mine.b += columns.begin * p.b_column;
  mine.c += rows.begin * p.c_row + columns.begin;
  mine.epilogue = p.epilogue.at(rows.begin * p.c_row + columns.begin);
  if (p.bias) mine.bias += rows.begin * p.bias_row + columns.begin * p.bias_column;
  multiply(mine);
}

int64_t together_scratch(const Product& p, int threads) {
  return threads > 1 && is_thin(p) && p.b_column == 1 ? thin_sums(p.m, p.n, p.k) : 0;
}

void multiply_together(const Product& p, float* scratch, base::ThreadTeam& team) {
  if (p.bias) start_from_bias(p);
  multiply_thin(p, p.accumulate || p.bias, scratch, team);
}

}  // namespace kintsugi::kernels::cpu
