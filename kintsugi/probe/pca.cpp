#include "kintsugi/probe/pca.h"

#include <algorithm>
#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/probe/eigen.h"

namespace kintsugi::probe {

Matrix Standardizer::apply(const Matrix& x) const {
  Matrix y(x.rows, x.columns);
  for (size_t r = 0; r < x.rows; ++r)
    for (size_t c = 0; c < x.columns; ++c) y(r, c) = deviations[c] > 0 ? (x(r, c) - means[c]) / deviations[c] : 0;
  return y;
}

Standardizer fit_standardizer(const Matrix& x) {
  Standardizer s = {column_means(x), std::vector<double>(x.columns)};
  for (size_t r = 0; r < x.rows; ++r)
    for (size_t c = 0; c < x.columns; ++c) s.deviations[c] += (x(r, c) - s.means[c]) * (x(r, c) - s.means[c]);
  for (size_t c = 0; c < x.columns; ++c) {
    const double deviation = std::sqrt(s.deviations[c] / static_cast<double>(std::max<size_t>(x.rows, 1)));
    s.deviations[c] = deviation > 1e-12 * std::fabs(s.means[c]) ? deviation : 0;  // else rounding of a constant
  }
  return s;
}

Matrix Pca::apply(const Matrix& x) const {
  Matrix y(x.rows, components.rows);
  std::vector<double> centered(x.columns);
  for (size_t r = 0; r < x.rows; ++r) {
    for (size_t c = 0; c < x.columns; ++c) centered[c] = x(r, c) - means[c];
    for (size_t k = 0; k < components.rows; ++k) y(r, k) = dot(centered, components.row(k));
  }
  return y;
}

Pca fit_pca(const Matrix& x, size_t components) {
  if (components > x.columns || components + 1 > x.rows)
    throw base::UserError("probe", "{} principal components of {} features and {} training rows: at most {}",
                          components, x.columns, x.rows, x.rows == 0 ? 0 : std::min(x.columns, x.rows - 1));
  Pca pca = {.means = column_means(x)};
  const Eigen eigen = symmetric_eigen(centered_gram(x, pca.means));
  pca.components = Matrix(components, x.columns);
  const double divisor = static_cast<double>(x.rows - 1);
  for (const double value : eigen.values) pca.all_variance += std::max(value, 0.0) / divisor;
  for (size_t k = 0; k < components; ++k) {
    const std::span<const double> v = eigen.vectors.row(k);
    const auto largest = std::ranges::max_element(v, {}, [](double e) { return std::fabs(e); });
    for (size_t c = 0; c < x.columns; ++c) pca.components(k, c) = *largest < 0 ? -v[c] : v[c];
    pca.variances.push_back(std::max(eigen.values[k], 0.0) / divisor);
  }
  return pca;
}

}  // namespace kintsugi::probe
