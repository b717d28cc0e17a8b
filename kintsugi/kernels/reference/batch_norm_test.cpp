#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::batch_norm_test {
namespace {

using namespace test;

constexpr int64_t kChannels = 3, kCount = 2 * 3 * 2;
const Shape kX = {{"batch", 2}, {"height", 3}, {"width", 2}, {"channel", kChannels}},
            kChannel = {{"channel", kChannels}}, kStatistics = {{"moment", 2}, {"channel", kChannels}};
const Attributes kAttributes = {{"epsilon", 1e-5}, {"count", kCount}, {"momentum", 0.1}};

Tensor statistics_of(Tensor& x) {
  Tensor statistics(kStatistics, DType::f64);
  run_reference({.kind = "batch_statistics", .attributes = kAttributes}, {&x}, {&statistics});
  return statistics;
}

}  // namespace

TEST(ReferenceBatchNorm, SmallByHand) {
  const Shape x_shape = {{"batch", 4}, {"channel", 1}}, channel = {{"channel", 1}};
  Tensor x(x_shape, DType::f64, {1, 2, 3, 6}), gamma(channel, DType::f64, {2}), beta(channel, DType::f64, {10}),
      statistics({{"moment", 2}, {"channel", 1}}, DType::f64), y(x_shape, DType::f64);
  const Attributes attributes = {{"epsilon", 0.5}, {"count", int64_t{4}}, {"momentum", 0.25}};
  run_reference({.kind = "batch_statistics"}, {&x}, {&statistics});
  expect_close(statistics, {12, 50}, 0, 0);
  run_reference({.kind = "batch_norm", .attributes = attributes}, {&x, &gamma, &beta, &statistics}, {&y});
  expect_close(y, {8, 9, 10, 13}, 1e-14, 1e-14);  // mean 3, variance 3.5, deviation 2
  Tensor mean(channel, DType::f64, {7}), variance(channel, DType::f64, {1});
  run_reference({.kind = "running_statistics", .attributes = attributes}, {&mean, &variance, &statistics},
                {&mean, &variance});
  expect_close(mean, {6}, 1e-14, 1e-14);
  expect_close(variance, {0.75 + 0.25 * 14 / 3}, 1e-14, 1e-14);  // unbiased
  run_reference({.kind = "batch_norm", .attributes = attributes}, {&x, &gamma, &beta, nullptr, &mean, &variance}, {&y});
  const double deviation = std::sqrt(variance.get(0) + 0.5);
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(y.get(i), (x.get(i) - 6) / deviation * 2 + 10, 1e-14);
}

// The total derivative, including the statistics, which are recomputed from x in each evaluation.
TEST(ReferenceBatchNorm, Gradient) {
  Tensor x = random_tensor(kX, DType::f64, 1), gamma = random_tensor(kChannel, DType::f64, 2),
         beta = random_tensor(kChannel, DType::f64, 3), dy = random_tensor(kX, DType::f64, 4), y(kX, DType::f64);
  const auto value = [&] {
    Tensor statistics = statistics_of(x);
    run_reference({.kind = "batch_norm", .attributes = kAttributes}, {&x, &gamma, &beta, &statistics}, {&y});
    double sum = 0;
    for (int64_t i = 0; i < y.elements(); ++i) sum += y.get(i) * dy.get(i);
    return sum;
  };
  Tensor statistics = statistics_of(x), dgamma(kChannel, DType::f64), dbeta(kChannel, DType::f64), dx(kX, DType::f64);
  run_reference({.kind = "batch_norm_sums", .attributes = kAttributes}, {&x, &statistics, &dy}, {&dgamma, &dbeta});
  run_reference({.kind = "batch_norm_grad", .attributes = kAttributes}, {&x, &gamma, &statistics, &dgamma, &dbeta, &dy},
                {&dx});
  const auto check = [&](Tensor& of, const Tensor& gradient, const std::string& what) {
    Tensor want(of.type());
    for (int64_t i = 0; i < of.elements(); ++i) {
      const double at = of.get(i), step = 1e-5;
      of.set(i, at + step);
      const double above = value();
      of.set(i, at - step);
      const double below = value();
      of.set(i, at);
      want.set(i, (above - below) / (2 * step));
    }
    expect_close(gradient, want, 1e-7, 1e-8, what);
  };
  check(x, dx, "x");
  check(gamma, dgamma, "gamma");
  check(beta, dbeta, "beta");
}

TEST(ReferenceBatchNorm, GradientInPlace) {
  Tensor x = random_tensor(kX, DType::f64, 1), gamma = random_tensor(kChannel, DType::f64, 2),
         dy = random_tensor(kX, DType::f64, 4), statistics = statistics_of(x),
         sums = random_tensor(kChannel, DType::f64, 5), dx(kX, DType::f64);
  const std::vector<Tensor*> ins = {&x, &gamma, &statistics, &sums, &sums, &dy};
  run_reference({.kind = "batch_norm_grad", .attributes = kAttributes}, ins, {&dx});
  run_reference({.kind = "batch_norm_grad", .attributes = kAttributes}, ins, {&dy});
  expect_close(dy, dx, 0, 0);
}

}  // namespace kintsugi::kernels::reference::batch_norm_test
