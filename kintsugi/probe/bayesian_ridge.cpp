#include "kintsugi/probe/bayesian_ridge.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "kintsugi/base/error.h"
#include "kintsugi/probe/eigen.h"

namespace kintsugi::probe {

std::vector<double> LinearModel::predict(const Matrix& x) const {
  std::vector<double> y(x.rows);
  for (size_t r = 0; r < x.rows; ++r) y[r] = intercept + dot(x.row(r), coefficients);
  return y;
}

double mean_squared_error(std::span<const double> predicted, std::span<const double> y) {
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += (predicted[i] - y[i]) * (predicted[i] - y[i]);
  return sum / static_cast<double>(y.size());
}

BayesianRidge fit_bayesian_ridge(const Matrix& x, std::span<const double> y) {
  base::require(x.rows == y.size() && x.rows > 1, "probe", "{} rows for {} targets", x.rows, y.size());
  constexpr double kPrior = 1e-6, kTolerance = 1e-3;
  constexpr int kMostIterations = 300;
  const auto rows = static_cast<double>(x.rows);
  const std::vector<double> means = column_means(x);
  const double mean = std::accumulate(y.begin(), y.end(), 0.0) / rows;
  Matrix centered = x;
  std::vector<double> target(x.rows), projected(x.columns);  // X^T y
  double variance = 0;
  for (size_t r = 0; r < x.rows; ++r) {
    target[r] = y[r] - mean;
    variance += target[r] * target[r] / rows;
    for (size_t c = 0; c < x.columns; ++c) {
      centered(r, c) -= means[c];
      projected[c] += centered(r, c) * target[r];
    }
  }
  const Eigen eigen = symmetric_eigen(centered_gram(x, means));
  std::vector<double> squares, in_basis;  // singular values squared; V^T X^T y
  for (size_t i = 0; i < x.columns; ++i) {
    squares.push_back(std::max(eigen.values[i], 0.0));
    in_basis.push_back(dot(eigen.vectors.row(i), projected));
  }
  const auto coefficients_of = [&](double alpha, double lambda) {
    std::vector<double> w(x.columns);
    for (size_t i = 0; i < x.columns; ++i) {
      const double along = in_basis[i] / (squares[i] + lambda / alpha);
      for (size_t c = 0; c < x.columns; ++c) w[c] += along * eigen.vectors(i, c);
    }
    return w;
  };
  BayesianRidge model;
  model.alpha = 1 / (variance + std::numeric_limits<double>::epsilon());
  model.lambda = 1;
  std::vector<double> before;
  for (model.iterations = 1; model.iterations <= kMostIterations; ++model.iterations) {
    model.coefficients = coefficients_of(model.alpha, model.lambda);
    double error = 0, gamma = 0;
    for (size_t r = 0; r < x.rows; ++r) {
      const double e = target[r] - dot(centered.row(r), model.coefficients);
      error += e * e;
    }
    for (const double square : squares) gamma += model.alpha * square / (model.lambda + model.alpha * square);
    model.lambda = (gamma + 2 * kPrior) / (dot(model.coefficients, model.coefficients) + 2 * kPrior);
    model.alpha = (rows - gamma + 2 * kPrior) / (error + 2 * kPrior);
    double change = 0;
    for (size_t c = 0; c < before.size(); ++c) change += std::fabs(model.coefficients[c] - before[c]);
    if (!before.empty() && change < kTolerance) break;
    before = model.coefficients;
  }
  model.coefficients = coefficients_of(model.alpha, model.lambda);
  model.intercept = mean - dot(means, model.coefficients);
  if (!std::isfinite(model.intercept + dot(model.coefficients, model.coefficients)))
    throw base::UserError("probe", "the features or the targets are too large or too small to fit");
  return model;
}

}  // namespace kintsugi::probe
