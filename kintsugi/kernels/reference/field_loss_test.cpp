#include <cmath>
#include <limits>

#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::field_loss_test {
namespace {

using namespace test;

const Shape kField = {{"batch", 2}, {"height", 2}, {"target", 2}}, kSamples = {{"batch", 2}},
            kTargets = {{"target", 2}};
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST(ReferenceFieldErrors, BySampleAndByTarget) {
  Tensor y(kField, DType::f64, {1, 2, 3, 4, 5, 6, 7, 8}), targets(kField, DType::f32, {1, 0, kNone, 3, 3, 2, 4, 8});
  Tensor errors(kSamples, DType::f64), norms(kSamples, DType::f64);
  run_reference({.kind = "field_errors"}, {&y, &targets}, {&errors, &norms});
  expect_close(errors, {4 + 1, 4 + 16 + 9}, 0, 0);
  expect_close(norms, {1 + 9, 9 + 4 + 16 + 64}, 0, 0);
  Tensor of_target(kTargets, DType::f64), norm_of_target(kTargets, DType::f64);
  run_reference({.kind = "field_errors"}, {&y, &targets}, {&of_target, &norm_of_target});
  expect_close(of_target, {4 + 9, 4 + 1 + 16}, 0, 0);
  expect_close(norm_of_target, {1 + 9 + 16, 9 + 4 + 64}, 0, 0);
  const Trial padded = {.kind = "field_errors", .indices = {{"height", DimIndex({{0, 1}, {-1, 1}}, 1)}}};
  run_reference(padded, {&y, &targets}, {&errors, &norms});
  expect_close(errors, {4, 4 + 16}, 0, 0);
}

TEST(ReferenceFieldErrors, Gradient) {
  Tensor targets = random_tensor(kField, DType::f32, 2);
  targets.set(3, kNone);
  check_gradient({.forward = {.kind = "field_errors"},
                  .ins = {random_tensor(kField, DType::f64, 1), targets},
                  .outs = {{kSamples, DType::f64}, {kSamples, DType::f64}},
                  .with_respect_to = {0},
                  .gradients = [](auto& ins, auto&, auto& dy) {
                    std::vector<Tensor> d = {Tensor(kField, DType::f64)};
                    run_reference({.kind = "field_errors_grad"}, {&ins[0], &ins[1], &dy[0]}, {&d[0]});
                    return d;
                  }});
}

// A sample without a norm, as the samples after the last, is not counted.
TEST(ReferenceRelativeError, IsTheMeanOfQuotients) {
  Tensor errors({{"batch", 3}}, DType::f64, {4, 5, 0}), norms({{"batch", 3}}, DType::f64, {16, 0, 2}),
      loss({}, DType::f64), count({}, DType::f64), dloss({}, DType::f64, {3}), d({{"batch", 3}}, DType::f64);
  run_reference({.kind = "relative_error"}, {&errors, &norms}, {&loss, &count});
  EXPECT_EQ(loss.get(0), 0.5);
  EXPECT_EQ(count.get(0), 2);
  run_reference({.kind = "relative_error_grad"}, {&errors, &norms, &dloss}, {&d});
  expect_close(d, {3.0 / (2 * 2 * 4), 0, 0}, 1e-15, 0);
}

TEST(ReferenceRelativeError, Gradient) {
  check_gradient({.forward = {.kind = "relative_error"},
                  .ins = {random_tensor(kSamples, DType::f64, 1, 1, 4), random_tensor(kSamples, DType::f64, 2, 1, 4)},
                  .outs = {{{}, DType::f64}, {{}, DType::f64}},
                  .with_respect_to = {0},
                  .gradients = [](auto& ins, auto&, auto& dy) {
                    std::vector<Tensor> d = {Tensor(kSamples, DType::f64)};
                    run_reference({.kind = "relative_error_grad"}, {&ins[0], &ins[1], &dy[0]}, {&d[0]});
                    return d;
                  }});
}

}  // namespace kintsugi::kernels::reference::field_loss_test
