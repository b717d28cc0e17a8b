#include <limits>

#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::cross_entropy_test {
namespace {

using namespace test;

const Shape kLabels = {{"batch", 2}, {"seq", 3}};

TEST(ReferenceCrossEntropy, CountsLabelledPositions) {
  Tensor lse(kLabels, DType::f64, {1, 2, 3, 4, 5, 6}), target(kLabels, DType::f64, {0.5, 0, 1, 1, 2, 0});
  Tensor labels(kLabels, DType::i32, {3, -1, 0, 5, 5, 5}), loss({}, DType::f64), count({}, DType::f64);
  run_reference({.kind = "cross_entropy"}, {&lse, &target, &labels}, {&loss, &count});
  EXPECT_EQ(loss.get(0), 14.5);
  EXPECT_EQ(count.get(0), 5);
  run_reference({.kind = "cross_entropy", .accumulate = 3}, {&lse, &target, &labels}, {&loss, &count});
  EXPECT_EQ(loss.get(0), 29);
  EXPECT_EQ(count.get(0), 10);

  // The last position of seq, then the first sample, are padding.
  const Trial seq = {.kind = "cross_entropy", .indices = {{"seq", DimIndex({{0, 2}, {-1, 1}}, 2)}}};
  run_reference(seq, {&lse, &target, &labels}, {&loss, &count});
  EXPECT_EQ(loss.get(0), 6.5);
  EXPECT_EQ(count.get(0), 3);
  const Trial batch = {.kind = "cross_entropy", .indices = {{"batch", DimIndex({{-1, 1}, {0, 1}}, 1)}}};
  run_reference(batch, {&lse, &target, &labels}, {&loss, &count});
  EXPECT_EQ(loss.get(0), 12);
  EXPECT_EQ(count.get(0), 3);
}

TEST(ReferenceCrossEntropy, UncountedPositionsAreNotRead) {
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  Tensor lse(kLabels, DType::f64, {nothing, 2, 3, 4, 5, 6}), target(kLabels, DType::f64, {nothing, 0, 0, 0, 0, 0});
  Tensor labels(kLabels, DType::i32, {-1, 1, 1, 1, 1, 1}), loss({}, DType::f64), count({}, DType::f64);
  run_reference({.kind = "cross_entropy"}, {&lse, &target, &labels}, {&loss, &count});
  EXPECT_EQ(loss.get(0), 20);
}

TEST(ReferenceCrossEntropy, Gradient) {
  Tensor labels(kLabels, DType::i32, {3, -1, 0, 5, 5, 5}), dloss({}, DType::f64, {2});
  Tensor dlse(kLabels, DType::f32), dtarget(kLabels, DType::f32);
  run_reference({.kind = "cross_entropy_grad", .indices = {{"seq", DimIndex({{0, 2}, {-1, 1}}, 2)}}}, {&labels, &dloss},
                {&dlse, &dtarget});
  expect_close(dlse, {2, 0, 0, 2, 2, 0}, 0, 0);
  expect_close(dtarget, {-2, 0, 0, -2, -2, 0}, 0, 0);

  Tensor fixed = labels;
  check_gradient({.forward = {.kind = "cross_entropy"},
                  .ins = {random_tensor(kLabels, DType::f64, 1), random_tensor(kLabels, DType::f64, 2), fixed},
                  .outs = {{{}, DType::f64}, {{}, DType::f64}},
                  .with_respect_to = {0, 1},
                  .gradients =
                      [](auto& ins, auto&, auto& dy) {
                        std::vector<Tensor> d = {Tensor(kLabels, DType::f64), Tensor(kLabels, DType::f64)};
                        run_reference({.kind = "cross_entropy_grad"}, {&ins[2], &dy[0]}, {&d[0], &d[1]});
                        return d;
                      },
                  .num_cotangents = 1});
}

}  // namespace
}  // namespace kintsugi::kernels::reference::cross_entropy_test
