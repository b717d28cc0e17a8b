#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/activation.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {
namespace {

// Per channel.
struct Moments {
  std::vector<double> mean, variance;  // biased
};

Moments moments_of(const KernelCall& call, const View& statistics) {
  const std::vector<double> sums = load(statistics);  // [moment channels]
  const auto count = static_cast<double>(call.attributes.integer("count"));
  const size_t channels = sums.size() / 2;
  Moments m;
  for (size_t c = 0; c < channels; ++c) {
    m.mean.push_back(sums[c] / count);
    m.variance.push_back(std::max(sums[channels + c] / count - m.mean[c] * m.mean[c], 0.0));
  }
  return m;
}

double inverse_deviation(const KernelCall& call, double variance) {
  return 1 / std::sqrt(variance + call.attributes.number("epsilon"));
}

}  // namespace

void batch_statistics(const KernelCall& call) {
  const std::vector<double> x = load(call.ins[0]);
  const auto channels = static_cast<size_t>(width(call.ins[0].shape()));
  std::vector<double> sums(2 * channels, 0.0);
  for (size_t i = 0; i < x.size(); ++i) {
    sums[i % channels] += x[i];
    sums[channels + i % channels] += x[i] * x[i];
  }
  store(call, 0, sums);
}

void batch_norm(const KernelCall& call) {
  using In = BatchNormIn;
  const std::vector<double> x = load(call.ins[In::kX]), gamma = load(call.ins[In::kGamma]),
                            beta = load(call.ins[In::kBeta]);
  const View& statistics = call.ins[In::kStatistics];
  const Moments m = statistics.data ? moments_of(call, statistics)
                                    : Moments{load(call.ins[In::kMean]), load(call.ins[In::kVariance])};
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % gamma.size();
    y[i] = (x[i] - m.mean[c]) * inverse_deviation(call, m.variance[c]) * gamma[c] + beta[c];
  }
  if (call.ins[In::kAdded].data) {
    const std::vector<double> added = load(call.ins[In::kAdded]);
    for (size_t i = 0; i < y.size(); ++i) y[i] += added[i];
  }
  if (call.attributes.has("epilogue")) {
    const Activation& activation = activation_of(call.attributes.text("epilogue"), call.attributes);
    for (double& element : y) element = activation.value(element);
  }
  store(call, 0, y);
}

// dbeta: the sum of dy; dgamma: the sum of dy * xhat
void batch_norm_sums(const KernelCall& call) {
  using In = BatchNormSumsIn;
  const std::vector<double> x = load(call.ins[In::kX]), dy = load(call.ins[In::kDy]);
  const Moments m = moments_of(call, call.ins[In::kStatistics]);
  std::vector<double> dgamma(m.mean.size(), 0.0), dbeta(m.mean.size(), 0.0);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % m.mean.size();
    dgamma[c] += dy[i] * (x[i] - m.mean[c]) * inverse_deviation(call, m.variance[c]);
    dbeta[c] += dy[i];
  }
  store(call, BatchNormSumsOut::kDgamma, dgamma);
  store(call, BatchNormSumsOut::kDbeta, dbeta);
}

void batch_norm_grad(const KernelCall& call) {
  using In = BatchNormGradIn;
  const std::vector<double> x = load(call.ins[In::kX]), gamma = load(call.ins[In::kGamma]),
                            dgamma = load(call.ins[In::kDgamma]), dbeta = load(call.ins[In::kDbeta]),
                            dy = load(call.ins[In::kDy]);
  const Moments m = moments_of(call, call.ins[In::kStatistics]);
  const auto count = static_cast<double>(call.attributes.integer("count"));
  std::vector<double> dx(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % gamma.size();
    const double inverse = inverse_deviation(call, m.variance[c]), xhat = (x[i] - m.mean[c]) * inverse;
    dx[i] = gamma[c] * inverse * (dy[i] - dbeta[c] / count - xhat * dgamma[c] / count);
  }
  store(call, 0, dx);
}

void running_statistics(const KernelCall& call) {
  using In = RunningStatisticsIn;
  std::vector<double> mean = load(call.ins[In::kMean]), variance = load(call.ins[In::kVariance]);
  const Moments m = moments_of(call, call.ins[In::kStatistics]);
  const auto count = static_cast<double>(call.attributes.integer("count"));
  const double momentum = call.attributes.number("momentum");
  for (size_t c = 0; c < mean.size(); ++c) {
    mean[c] += momentum * (m.mean[c] - mean[c]);
    variance[c] += momentum * (m.variance[c] * count / std::max(count - 1, 1.0) - variance[c]);
  }
  store(call, 0, mean);
  store(call, 1, variance);
}

}  // namespace kintsugi::kernels::reference
