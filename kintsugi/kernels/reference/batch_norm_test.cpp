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

// Three groups of two samples.
const Shape kGroupedX = {{"batch", 6}, {"height", 3}, {"width", 2}, {"channel", kChannels}},
            kOfGroups = {{"batch_group", 3}, {"channel", kChannels}},
            kGroupedStatistics = {{"batch_group", 3}, {"moment", 2}, {"channel", kChannels}};

Tensor grouped_statistics_of(Tensor& x) {
  Tensor statistics(kGroupedStatistics, DType::f64);
  run_reference({.kind = "batch_statistics", .attributes = {{"samples", int64_t{2}}}}, {&x}, {&statistics});
  return statistics;
}

// The elements of one of three equal blocks.
Tensor block_of(const Tensor& x, const Shape& shape, int64_t block) {
  Tensor part(shape, DType::f64);
  for (int64_t i = 0; i < part.elements(); ++i) part.set(i, x.get(block * part.elements() + i));
  return part;
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

namespace {

// Checks the total derivative, including the statistics, which are recomputed from x in each evaluation. dgamma and
// dbeta have the shape of sums.
void check_gradient(const Shape& x_shape, const Shape& sums, Tensor (*statistics_of_x)(Tensor&)) {
  Tensor x = random_tensor(x_shape, DType::f64, 1), gamma = random_tensor(kChannel, DType::f64, 2),
         beta = random_tensor(kChannel, DType::f64, 3), dy = random_tensor(x_shape, DType::f64, 4),
         y(x_shape, DType::f64);
  const auto value = [&] {
    Tensor statistics = statistics_of_x(x);
    run_reference({.kind = "batch_norm", .attributes = kAttributes}, {&x, &gamma, &beta, &statistics}, {&y});
    double sum = 0;
    for (int64_t i = 0; i < y.elements(); ++i) sum += y.get(i) * dy.get(i);
    return sum;
  };
  Tensor statistics = statistics_of_x(x), dgamma(sums, DType::f64), dbeta(sums, DType::f64), dx(x_shape, DType::f64);
  run_reference({.kind = "batch_norm_sums", .attributes = kAttributes}, {&x, &statistics, &dy}, {&dgamma, &dbeta});
  run_reference({.kind = "batch_norm_grad", .attributes = kAttributes}, {&x, &gamma, &statistics, &dgamma, &dbeta, &dy},
                {&dx});
  const auto over_groups = [](const Tensor& of) {
    Tensor sum = filled(kChannel, DType::f64, 0);
    for (int64_t i = 0; i < of.elements(); ++i) sum.set(i % kChannels, sum.get(i % kChannels) + of.get(i));
    return sum;
  };
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
  check(gamma, over_groups(dgamma), "gamma");
  check(beta, over_groups(dbeta), "beta");
}

}  // namespace

TEST(ReferenceBatchNorm, Gradient) {
  check_gradient(kX, kChannel, statistics_of);
}

TEST(ReferenceBatchNorm, GradientInGroups) {
  check_gradient(kGroupedX, kOfGroups, grouped_statistics_of);
}

TEST(ReferenceBatchNorm, GroupsAreThoseOfEachAlone) {
  Tensor x = random_tensor(kGroupedX, DType::f64, 1), gamma = random_tensor(kChannel, DType::f64, 2),
         beta = random_tensor(kChannel, DType::f64, 3), dy = random_tensor(kGroupedX, DType::f64, 4),
         statistics = grouped_statistics_of(x), y(kGroupedX, DType::f64), dx(kGroupedX, DType::f64),
         dgamma(kOfGroups, DType::f64), dbeta(kOfGroups, DType::f64);
  run_reference({.kind = "batch_norm", .attributes = kAttributes}, {&x, &gamma, &beta, &statistics}, {&y});
  run_reference({.kind = "batch_norm_sums", .attributes = kAttributes}, {&x, &statistics, &dy}, {&dgamma, &dbeta});
  run_reference({.kind = "batch_norm_grad", .attributes = kAttributes}, {&x, &gamma, &statistics, &dgamma, &dbeta, &dy},
                {&dx});
  for (int64_t group = 0; group < 3; ++group) {
    Tensor part = block_of(x, kX, group), dy_part = block_of(dy, kX, group), sums = statistics_of(part),
           y_part(kX, DType::f64), dx_part(kX, DType::f64), dgamma_part(kChannel, DType::f64),
           dbeta_part(kChannel, DType::f64);
    run_reference({.kind = "batch_norm", .attributes = kAttributes}, {&part, &gamma, &beta, &sums}, {&y_part});
    run_reference({.kind = "batch_norm_sums", .attributes = kAttributes}, {&part, &sums, &dy_part},
                  {&dgamma_part, &dbeta_part});
    run_reference({.kind = "batch_norm_grad", .attributes = kAttributes},
                  {&part, &gamma, &sums, &dgamma_part, &dbeta_part, &dy_part}, {&dx_part});
    expect_close(block_of(statistics, kStatistics, group), sums, 0, 0);
    expect_close(block_of(y, kX, group), y_part, 0, 0);
    expect_close(block_of(dgamma, kChannel, group), dgamma_part, 0, 0);
    expect_close(block_of(dbeta, kChannel, group), dbeta_part, 0, 0);
    expect_close(block_of(dx, kX, group), dx_part, 0, 0);
  }
}

TEST(ReferenceBatchNorm, MomentsOfGroupsByHand) {
  const Shape channel = {{"channel", 1}};
  Tensor x({{"batch", 4}, {"channel", 1}}, DType::f64, {1, 3, 6, 10}),
      statistics({{"batch_group", 2}, {"moment", 2}, {"channel", 1}}, DType::f64),
      moments({{"group_moment", 3}, {"channel", 1}}, DType::f64), mean(channel, DType::f64, {1}),
      variance(channel, DType::f64, {1});
  run_reference({.kind = "batch_statistics", .attributes = {{"samples", int64_t{2}}}}, {&x}, {&statistics});
  expect_close(statistics, {4, 10, 16, 136}, 0, 0);
  run_reference({.kind = "batch_moments", .attributes = {{"count", int64_t{2}}}}, {&statistics}, {&moments});
  expect_close(moments, {2 + 8, 2 + 8, 2}, 1e-14, 1e-14);
  run_reference({.kind = "running_moments", .attributes = {{"momentum", 0.25}}}, {&mean, &variance, &moments},
                {&mean, &variance});
  expect_close(mean, {0.75 + 0.25 * 5}, 1e-14, 1e-14);
  expect_close(variance, {0.75 + 0.25 * 5}, 1e-14, 1e-14);
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
