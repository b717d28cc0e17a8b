// A dense matrix, row-major.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kintsugi::probe {

struct Matrix {
  size_t rows = 0, columns = 0;
  std::vector<double> values = {};  // [rows columns]

  Matrix() = default;
  Matrix(size_t rows_, size_t columns_) : rows(rows_), columns(columns_), values(rows_ * columns_) {}

  double& operator()(size_t r, size_t c) { return values[r * columns + c]; }
  double operator()(size_t r, size_t c) const { return values[r * columns + c]; }
  std::span<const double> row(size_t r) const { return std::span(values).subspan(r * columns, columns); }
};

double dot(std::span<const double> a, std::span<const double> b);
// The mean of each column.
std::vector<double> column_means(const Matrix& x);
// The rows minus `means`, then X^T X: [columns columns].
Matrix centered_gram(const Matrix& x, std::span<const double> means);
Matrix rows_of(const Matrix& x, std::span<const size_t> rows);
// Columns of both, for the same rows.
Matrix joined(const Matrix& a, const Matrix& b);

}  // namespace kintsugi::probe
