#include "kintsugi/probe/eigen.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "kintsugi/base/error.h"

namespace kintsugi::probe {
namespace {

// diagonal[n], and below[i] between i - 1 and i.
struct Tridiagonal {
  std::vector<double> diagonal, below;
};

// Returns T = Q A Q^T; row i of `q` is that of Q.
Tridiagonal tridiagonalize(Matrix& a, Matrix& q) {
  const size_t n = a.rows;
  Tridiagonal t = {std::vector<double>(n), std::vector<double>(n)};
  q = Matrix(n, n);
  for (size_t i = 0; i < n; ++i) q(i, i) = 1;
  std::vector<double> v(n), p(n);
  for (size_t k = 0; k + 2 < n; ++k) {
    // A reflection of rows and columns k + 1 ... that leaves only the first element of column k below the diagonal.
    double norm = 0;
    for (size_t i = k + 1; i < n; ++i) norm += a(i, k) * a(i, k);
    norm = std::sqrt(norm);
    if (norm == 0) continue;
    const double first = a(k + 1, k), alpha = first > 0 ? -norm : norm;
    for (size_t i = k + 1; i < n; ++i) v[i] = a(i, k);
    v[k + 1] -= alpha;
    double square = 0;
    for (size_t i = k + 1; i < n; ++i) square += v[i] * v[i];
    if (square == 0) continue;
    const double beta = 2 / square;
    for (size_t i = k + 1; i < n; ++i) {
      p[i] = 0;
      for (size_t j = k + 1; j < n; ++j) p[i] += a(i, j) * v[j];
      p[i] *= beta;
    }
    double half = 0;
    for (size_t i = k + 1; i < n; ++i) half += p[i] * v[i];
    half *= beta / 2;
    for (size_t i = k + 1; i < n; ++i) p[i] -= half * v[i];
    for (size_t i = k + 1; i < n; ++i)
      for (size_t j = k + 1; j < n; ++j) a(i, j) -= v[i] * p[j] + p[i] * v[j];
    a(k + 1, k) = a(k, k + 1) = alpha;
    for (size_t i = k + 2; i < n; ++i) a(i, k) = a(k, i) = 0;
    // Q <- H Q: column by column, as sums over the rows.
    std::vector<double> sums(n);
    for (size_t i = k + 1; i < n; ++i)
      for (size_t j = 0; j < n; ++j) sums[j] += v[i] * q(i, j);
    for (size_t i = k + 1; i < n; ++i)
      for (size_t j = 0; j < n; ++j) q(i, j) -= beta * v[i] * sums[j];
  }
  for (size_t i = 0; i < n; ++i) {
    t.diagonal[i] = a(i, i);
    if (i > 0) t.below[i] = a(i, i - 1);
  }
  return t;
}

// Diagonalizes t, whose elements are at most about 1; applies the rotations to the rows of `q`.
void diagonalize(Tridiagonal& t, Matrix& q) {
  constexpr int kMostSteps = 200;     // for an eigenvalue; a few are usual
  constexpr double kNothing = 1e-60;  // whose square does not vanish, and far below rounding
  const size_t n = t.diagonal.size();
  std::vector<double>&d = t.diagonal, &e = t.below;
  for (size_t high = n; high-- > 1;) {
    for (int step = 0;; ++step) {
      base::require(step < kMostSteps, "probe", "an eigenvalue is not found in {} steps", kMostSteps);
      size_t low = high;  // the first row of the last block that is not split
      const auto joins = [&](size_t i) {
        return std::fabs(e[i]) >
               std::numeric_limits<double>::epsilon() * (std::fabs(d[i - 1]) + std::fabs(d[i])) + kNothing;
      };
      while (low > 0 && joins(low)) --low;
      if (low == high) break;
      // The eigenvalue of the last two rows that is nearer to the last element (Wilkinson's shift).
      const double difference = (d[high - 1] - d[high]) / 2, square = e[high] * e[high];
      const double root = std::sqrt(difference * difference + square);
      const double shift = d[high] - square / (difference + (difference >= 0 ? root : -root));
      double x = d[low] - shift, z = e[low + 1];
      for (size_t k = low; k < high; ++k) {
        // A rotation of rows k and k + 1.
        const double length = std::hypot(x, z), c = length == 0 ? 1 : x / length, s = length == 0 ? 0 : z / length;
        if (k > low) e[k] = length;
        const double first = d[k], second = d[k + 1], between = e[k + 1];
        d[k] = c * c * first + 2 * c * s * between + s * s * second;
        d[k + 1] = s * s * first - 2 * c * s * between + c * c * second;
        e[k + 1] = c * s * (second - first) + (c * c - s * s) * between;
        if (k + 1 < high) {
          x = e[k + 1], z = s * e[k + 2];
          e[k + 2] *= c;
        }
        for (size_t j = 0; j < n; ++j) {
          const double a = q(k, j), b = q(k + 1, j);
          q(k, j) = c * a + s * b;
          q(k + 1, j) = c * b - s * a;
        }
      }
    }
    e[high] = 0;
  }
}

}  // namespace

Eigen symmetric_eigen(Matrix a) {
  base::require(a.rows == a.columns, "probe", "a matrix of {} x {}", a.rows, a.columns);
  for (size_t i = 0; i < a.rows; ++i)
    for (size_t j = 0; j <= i; ++j) {
      if (!std::isfinite(a(i, j))) throw base::UserError("probe", "the features are too large for their products");
      a(j, i) = a(i, j);
    }
  const double scale =
      a.values.empty() ? 0 : std::fabs(*std::ranges::max_element(a.values, {}, [](double e) { return std::fabs(e); }));
  if (scale > 0)
    for (double& e : a.values) e /= scale;
  Matrix q;
  Tridiagonal t = tridiagonalize(a, q);
  diagonalize(t, q);
  std::vector<size_t> order(a.rows);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](size_t i) { return t.diagonal[i]; });
  Eigen found = {.values = {}, .vectors = rows_of(q, order)};
  for (const size_t i : order) found.values.push_back(t.diagonal[i] * scale);
  return found;
}

}  // namespace kintsugi::probe
