#include "kintsugi/kernels/reference/gradient_check.h"

#include <gtest/gtest-spi.h>

#include "kintsugi/kernels/reference/reference_kernels.h"

namespace kintsugi::kernels::reference {
namespace {

constexpr double kStep = 1e-5;

double weighted_sum(const std::vector<Tensor>& outs, const std::vector<Tensor>& cotangents) {
  double sum = 0;
  for (size_t o = 0; o < cotangents.size(); ++o) {
    for (int64_t i = 0; i < outs[o].elements(); ++i) {
      // A row that sees nothing has a log-sum-exp of -infinity; nothing depends on it.
      if (cotangents[o].get(i) != 0) sum += outs[o].get(i) * cotangents[o].get(i);
    }
  }
  return sum;
}

}  // namespace

std::vector<Tensor*> pointers(std::vector<Tensor>& there, uint32_t absent) {
  std::vector<Tensor*> all;
  for (Tensor& x : there) all.push_back(&x);
  return tensor::by_position(std::span<Tensor* const>(all), absent, static_cast<Tensor*>(nullptr));
}

void run_reference(const test::Trial& trial, const std::vector<Tensor*>& ins, const std::vector<Tensor*>& outs) {
  const auto set = reference_kernels();
  test::run_kernel(*set, trial, ins, outs);
}

void check_gradient(GradientCheck check) {
  std::vector<Tensor> outs, cotangents;
  for (const tensor::Type& type : check.outs) {
    outs.emplace_back(type);
    if (cotangents.size() < check.num_cotangents) {
      cotangents.push_back(test::random_tensor(type.shape, type.dtype, 100 + cotangents.size()));
    }
  }
  const auto value = [&] {
    run_reference(check.forward, pointers(check.ins, check.absent), pointers(outs));
    return weighted_sum(outs, cotangents);
  };
  value();
  std::vector<Tensor> got = check.gradients(check.ins, outs, cotangents);
  ASSERT_EQ(got.size(), check.with_respect_to.size());
  for (size_t n = 0; n < got.size(); ++n) {
    Tensor& x = check.ins[check.with_respect_to[n]];
    Tensor want(x.type());
    for (int64_t i = 0; i < x.elements(); ++i) {
      const double at = x.get(i);
      x.set(i, at + kStep);
      const double above = value();
      x.set(i, at - kStep);
      const double below = value();
      x.set(i, at);
      want.set(i, (above - below) / (2 * kStep));
    }
    test::expect_close(got[n], want, 1e-7, 1e-8,
                       check.forward.kind + " input " + std::to_string(check.with_respect_to[n]));
  }
}

namespace {

TEST(GradientCheck, SeesAWrongGradient) {
  GradientCheck check{.forward = {.kind = "scale", .attributes = {{"by", 3.0}}},
                      .ins = {test::random_tensor({{"embed", 3}}, tensor::DType::f64, 1)},
                      .outs = {{{{"embed", 3}}, tensor::DType::f64}},
                      .with_respect_to = {0},
                      .gradients = [](auto&, auto&, auto& dy) { return std::vector<Tensor>{dy[0]}; }};
  ::testing::TestPartResultArray failures;
  {
    ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    check_gradient(check);
  }
  EXPECT_EQ(failures.size(), 1);
}

}  // namespace
}  // namespace kintsugi::kernels::reference
