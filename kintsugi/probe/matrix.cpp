#include "kintsugi/probe/matrix.h"

#include <algorithm>

#include "kintsugi/base/error.h"

namespace kintsugi::probe {

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

std::vector<double> column_means(const Matrix& x) {
  std::vector<double> means(x.columns);
  for (size_t r = 0; r < x.rows; ++r)
    for (size_t c = 0; c < x.columns; ++c) means[c] += x(r, c);
  for (double& mean : means) mean /= static_cast<double>(std::max<size_t>(x.rows, 1));
  return means;
}

Matrix centered_gram(const Matrix& x, std::span<const double> means) {
  Matrix gram(x.columns, x.columns);
  std::vector<double> row(x.columns);
  for (size_t r = 0; r < x.rows; ++r) {
    for (size_t c = 0; c < x.columns; ++c) row[c] = x(r, c) - means[c];
    for (size_t i = 0; i < x.columns; ++i)
      for (size_t j = i; j < x.columns; ++j) gram(i, j) += row[i] * row[j];
  }
  for (size_t i = 0; i < x.columns; ++i)
    for (size_t j = 0; j < i; ++j) gram(i, j) = gram(j, i);
  return gram;
}

Matrix rows_of(const Matrix& x, std::span<const size_t> rows) {
  Matrix some(rows.size(), x.columns);
  for (size_t i = 0; i < rows.size(); ++i)
    std::ranges::copy(x.row(rows[i]), some.values.begin() + static_cast<std::ptrdiff_t>(i * x.columns));
  return some;
}

Matrix joined(const Matrix& a, const Matrix& b) {
  base::require(a.rows == b.rows, "probe", "{} rows and {}", a.rows, b.rows);
  Matrix both(a.rows, a.columns + b.columns);
  for (size_t r = 0; r < a.rows; ++r) {
    const auto to = both.values.begin() + static_cast<std::ptrdiff_t>(r * both.columns);
    std::ranges::copy(b.row(r), std::ranges::copy(a.row(r), to).out);
  }
  return both;
}

}  // namespace kintsugi::probe
