#include "kintsugi/kernels/norm_groups.h"
#include "kintsugi/kernels/operands.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {
namespace {

// Calls f(element, sample, channel, group) for each element of x that is not padding of its channels.
template <typename F>
void for_each_grouped(const KernelCall& call, const Shape& x, const F& f) {
  const int64_t channels = width(x), samples = x[0].size, each = samples == 0 ? 0 : x.elements() / samples;
  const std::vector<int64_t> groups = norm_groups(call, x[x.rank() - 1]);
  for (int64_t i = 0; i < x.elements(); ++i)
    if (const int64_t group = groups[static_cast<size_t>(i % channels)]; group >= 0)
      f(static_cast<size_t>(i), i / each, static_cast<size_t>(i % channels), group);
}

}  // namespace

void group_statistics(const KernelCall& call) {
  const std::vector<double> x = load(call.ins[0]);
  const int64_t groups = call.attributes.integer("groups");
  std::vector<double> sums(static_cast<size_t>(call.outs[0].elements()), 0.0);
  for_each_grouped(call, call.ins[0].shape(), [&](size_t i, int64_t sample, size_t, int64_t group) {
    sums[static_cast<size_t>(2 * sample * groups + group)] += x[i];
    sums[static_cast<size_t>((2 * sample + 1) * groups + group)] += x[i] * x[i];
  });
  store(call, 0, sums);
}

void group_norm(const KernelCall& call) {
  using In = GroupNormIn;
  const std::vector<double> x = load(call.ins[In::kX]), gamma = load(call.ins[In::kGamma]),
                            beta = load(call.ins[In::kBeta]), statistics = load(call.ins[In::kStatistics]);
  std::vector<double> y(x.size(), 0.0);
  for_each_grouped(call, call.ins[0].shape(), [&](size_t i, int64_t sample, size_t c, int64_t group) {
    const GroupMoments m = group_moments(call, statistics.data(), sample, group);
    y[i] = (x[i] - m.mean) * m.inverse_deviation * gamma[c] + beta[c];
  });
  store(call, 0, y);
}

void group_norm_sums(const KernelCall& call) {
  using In = GroupNormSumsIn;
  const std::vector<double> x = load(call.ins[In::kX]), gamma = load(call.ins[In::kGamma]),
                            statistics = load(call.ins[In::kStatistics]), dy = load(call.ins[In::kDy]);
  const int64_t groups = call.attributes.integer("groups");
  std::vector<double> dgamma(gamma.size(), 0.0), dbeta(gamma.size(), 0.0), sums(statistics.size(), 0.0);
  for_each_grouped(call, call.ins[0].shape(), [&](size_t i, int64_t sample, size_t c, int64_t group) {
    const GroupMoments m = group_moments(call, statistics.data(), sample, group);
    const double xhat = (x[i] - m.mean) * m.inverse_deviation;
    dgamma[c] += dy[i] * xhat;
    dbeta[c] += dy[i];
    sums[static_cast<size_t>(2 * sample * groups + group)] += dy[i] * gamma[c];
    sums[static_cast<size_t>((2 * sample + 1) * groups + group)] += dy[i] * gamma[c] * xhat;
  });
  store(call, GroupNormSumsOut::kDgamma, dgamma);
  store(call, GroupNormSumsOut::kDbeta, dbeta);
  store(call, GroupNormSumsOut::kSums, sums);
}

void group_norm_grad(const KernelCall& call) {
  using In = GroupNormGradIn;
  const std::vector<double> x = load(call.ins[In::kX]), gamma = load(call.ins[In::kGamma]),
                            statistics = load(call.ins[In::kStatistics]), sums = load(call.ins[In::kSums]),
                            dy = load(call.ins[In::kDy]);
  const int64_t groups = call.attributes.integer("groups");
  const auto count = static_cast<double>(call.attributes.integer("count"));
  std::vector<double> dx(x.size(), 0.0);
  for_each_grouped(call, call.ins[0].shape(), [&](size_t i, int64_t sample, size_t c, int64_t group) {
    const GroupMoments m = group_moments(call, statistics.data(), sample, group);
    const double xhat = (x[i] - m.mean) * m.inverse_deviation,
                 mean = sums[static_cast<size_t>(2 * sample * groups + group)] / count,
                 slope = sums[static_cast<size_t>((2 * sample + 1) * groups + group)] / count;
    dx[i] = m.inverse_deviation * (dy[i] * gamma[c] - mean - xhat * slope);
  });
  store(call, 0, dx);
}

}  // namespace kintsugi::kernels::reference
