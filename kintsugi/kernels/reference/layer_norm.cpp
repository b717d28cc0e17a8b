#include <cmath>

#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

namespace {

struct Statistics {
  double mean = 0;
  double inverse_deviation = 0;  // 1 / sqrt(variance + epsilon)
};

// For one row.
Statistics statistics_of(const double* x, int64_t n, double epsilon) {
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < n; ++i) mean += x[i];
  mean /= static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) variance += (x[i] - mean) * (x[i] - mean);
  variance /= static_cast<double>(n);
  return {mean, 1 / std::sqrt(variance + epsilon)};
}

}  // namespace

// In the rows below, xhat = (x - mean) * inverse_deviation.

void layer_norm(const KernelCall& call) {
  const View &x_view = call.ins[NormIn::kX], &beta_view = call.ins[NormIn::kBeta];
  const std::vector<double> x = load(x_view), gamma = load(call.ins[NormIn::kGamma]);  // [... embed], [embed]
  const int64_t n = width(x_view.shape());
  const std::vector<double> beta = beta_view.data ? load(beta_view) : std::vector<double>(static_cast<size_t>(n), 0.0);
  const double epsilon = call.attributes.number("epsilon");
  std::vector<double> y;
  for (int64_t row = 0; row < rows(x_view.shape()); ++row) {
    const double* x_row = x.data() + row * n;
    const Statistics s = statistics_of(x_row, n, epsilon);
    for (size_t i = 0; i < gamma.size(); ++i) {
      y.push_back((x_row[i] - s.mean) * s.inverse_deviation * gamma[i] + beta[i]);
    }
  }
  store(call, 0, y);
}

// With g = dy * gamma: dx = inverse_deviation * (g - mean(g) - xhat * mean(g * xhat)).
void layer_norm_grad(const KernelCall& call) {
  using In = NormGradIn;
  using Out = NormGradOut;
  const std::vector<double> x = load(call.ins[In::kX]), gamma = load(call.ins[In::kGamma]),
                            dy = load(call.ins[In::kDy]);
  const int64_t n = width(call.ins[In::kX].shape());
  const double epsilon = call.attributes.number("epsilon");
  std::vector<double> dx, dgamma(gamma.size(), 0.0), dbeta(gamma.size(), 0.0);
  std::vector<double> xhat(gamma.size()), g(gamma.size());
  for (int64_t row = 0; row < rows(call.ins[In::kX].shape()); ++row) {
    const double *x_row = x.data() + row * n, *dy_row = dy.data() + row * n;
    const Statistics s = statistics_of(x_row, n, epsilon);
    double mean_g = 0, mean_gx = 0;
    for (size_t i = 0; i < gamma.size(); ++i) {
      xhat[i] = (x_row[i] - s.mean) * s.inverse_deviation;
      g[i] = dy_row[i] * gamma[i];
      mean_g += g[i] / static_cast<double>(n);
      mean_gx += g[i] * xhat[i] / static_cast<double>(n);
      dgamma[i] += dy_row[i] * xhat[i];
      dbeta[i] += dy_row[i];
    }
    for (size_t i = 0; i < gamma.size(); ++i) dx.push_back(s.inverse_deviation * (g[i] - mean_g - xhat[i] * mean_gx));
  }
  store(call, Out::kDx, dx);
  if (call.outs[Out::kDgamma].data) store(call, Out::kDgamma, dgamma);
  if (call.outs[Out::kDbeta].data) store(call, Out::kDbeta, dbeta);
  if (!call.outs[Out::kSums].data) return;
  const std::vector<double> stored = load(call.outs[Out::kDx]);
  std::vector<double> sums(gamma.size(), 0.0);
  for (size_t i = 0; i < stored.size(); ++i) sums[i % gamma.size()] += stored[i];
  store(call, Out::kSums, sums);
}

}  // namespace kintsugi::kernels::reference
