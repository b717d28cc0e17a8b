#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/activation.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {
namespace {

// [channels], or per group: [groups channels].
struct Moments {
  std::vector<double> mean, variance;  // biased
};

Moments moments_of(const KernelCall& call, const View& statistics) {
  const std::vector<double> sums = load(statistics);  // [moment channels] or [groups moment channels]
  const auto count = static_cast<double>(call.attributes.integer("count"));
  const auto channels = static_cast<size_t>(width(statistics.shape()));
  Moments m;
  for (size_t first = 0; first < sums.size(); first += 2 * channels)
    for (size_t c = first; c < first + channels; ++c) {
      m.mean.push_back(sums[c] / count);
      m.variance.push_back(std::max(sums[channels + c] / count - m.mean.back() * m.mean.back(), 0.0));
    }
  return m;
}

// Of statistics; 1 if there are none.
size_t groups_of(const View& statistics) {
  return statistics.data && statistics.shape().rank() == 3 ? static_cast<size_t>(statistics.shape()[0].size) : 1;
}

// Index into [groups channels] of element i of x.
struct GroupChannel {
  size_t channels, in_group;  // elements
  GroupChannel(const View& x, size_t groups)
      : channels(static_cast<size_t>(width(x.shape()))),
        in_group(std::max<size_t>(static_cast<size_t>(x.elements()) / groups, 1)) {}
  size_t operator()(size_t i) const { return i / in_group * channels + i % channels; }
};

double inverse_deviation(const KernelCall& call, double variance) {
  return 1 / std::sqrt(variance + call.attributes.number("epsilon"));
}

}  // namespace

void batch_statistics(const KernelCall& call) {
  const std::vector<double> x = load(call.ins[0]);
  const GroupChannel place(call.ins[0], groups_of(call.outs[0]));
  std::vector<double> sums(static_cast<size_t>(call.outs[0].elements()), 0.0);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % place.channels, first = (place(i) - c) * 2;
    sums[first + c] += x[i];
    sums[first + place.channels + c] += x[i] * x[i];
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
  const GroupChannel place(call.ins[In::kX], groups_of(statistics));
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % gamma.size(), at = place(i);
    y[i] = (x[i] - m.mean[at]) * inverse_deviation(call, m.variance[at]) * gamma[c] + beta[c];
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

// dbeta: the sum of dy; dgamma: the sum of dy * xhat; per group as the statistics
void batch_norm_sums(const KernelCall& call) {
  using In = BatchNormSumsIn;
  const std::vector<double> x = load(call.ins[In::kX]), dy = load(call.ins[In::kDy]);
  const View& statistics = call.ins[In::kStatistics];
  const Moments m = moments_of(call, statistics);
  const GroupChannel place(call.ins[In::kX], groups_of(statistics));
  std::vector<double> dgamma(m.mean.size(), 0.0), dbeta(m.mean.size(), 0.0);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t at = place(i);
    dgamma[at] += dy[i] * (x[i] - m.mean[at]) * inverse_deviation(call, m.variance[at]);
    dbeta[at] += dy[i];
  }
  store(call, BatchNormSumsOut::kDgamma, dgamma);
  store(call, BatchNormSumsOut::kDbeta, dbeta);
}

void batch_norm_grad(const KernelCall& call) {
  using In = BatchNormGradIn;
  const std::vector<double> x = load(call.ins[In::kX]), gamma = load(call.ins[In::kGamma]),
                            dgamma = load(call.ins[In::kDgamma]), dbeta = load(call.ins[In::kDbeta]),
                            dy = load(call.ins[In::kDy]);
  const View& statistics = call.ins[In::kStatistics];
  const Moments m = moments_of(call, statistics);
  const GroupChannel place(call.ins[In::kX], groups_of(statistics));
  const auto count = static_cast<double>(call.attributes.integer("count"));
  std::vector<double> dx(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t at = place(i);
    const double inverse = inverse_deviation(call, m.variance[at]), xhat = (x[i] - m.mean[at]) * inverse;
    dx[i] = gamma[i % gamma.size()] * inverse * (dy[i] - dbeta[at] / count - xhat * dgamma[at] / count);
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

void batch_moments(const KernelCall& call) {
  const Moments m = moments_of(call, call.ins[0]);
  const auto count = static_cast<double>(call.attributes.integer("count"));
  const auto channels = static_cast<size_t>(width(call.ins[0].shape()));
  std::vector<double> sums(3 * channels, 0.0);
  for (size_t i = 0; i < m.mean.size(); ++i) {
    const size_t c = i % channels;
    if (call.index("batch_group")[static_cast<int64_t>(i / channels)] < 0) continue;
    sums[c] += m.mean[i];
    sums[channels + c] += m.variance[i] * count / std::max(count - 1, 1.0);
    sums[2 * channels + c] += 1;
  }
  store(call, 0, sums);
}

void running_moments(const KernelCall& call) {
  using In = RunningMomentsIn;
  std::vector<double> mean = load(call.ins[In::kMean]), variance = load(call.ins[In::kVariance]);
  const std::vector<double> sums = load(call.ins[In::kMoments]);  // [group_moment channels]
  const double momentum = call.attributes.number("momentum");
  for (size_t c = 0; c < mean.size(); ++c) {
    const double groups = sums[2 * mean.size() + c];
    if (groups == 0) continue;  // padding
    mean[c] += momentum * (sums[c] / groups - mean[c]);
    variance[c] += momentum * (sums[mean.size() + c] / groups - variance[c]);
  }
  store(call, 0, mean);
  store(call, 1, variance);
}

}  // namespace kintsugi::kernels::reference
