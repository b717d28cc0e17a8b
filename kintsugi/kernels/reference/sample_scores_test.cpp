#include <limits>

#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::sample_scores_test {
namespace {

using namespace test;

const Shape kLabels = {{"batch", 2}, {"seq", 3}};

TEST(ReferenceSampleScores, SumsOverCountedPositionsOfEachSample) {
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  Tensor lse(kLabels, DType::f64, {1, nothing, 3, 4, 5, 6}), target(kLabels, DType::f64, {0.5, 0, 1, 1, 2, 0});
  Tensor top(kLabels, DType::f64, {0.5, 9, 1.5, 1, 2, 0.25}), labels(kLabels, DType::i32, {3, -1, 0, 5, 5, 5});
  const auto sums = [] { return Tensor({{"batch", 2}}, DType::f64); };
  Tensor likelihood = sums(), count = sums(), misses = sums();
  const auto run = [&](const std::vector<NamedIndex>& indices) {
    run_reference({.kind = "sample_scores", .indices = indices}, {&lse, &target, &labels, &top},
                  {&likelihood, &count, &misses});
  };
  run({});
  expect_close(likelihood, {-2.5, -12}, 0, 0);
  expect_close(count, {2, 3}, 0, 0);
  expect_close(misses, {1, 1}, 0, 0);
  run({{"seq", DimIndex({{0, 2}, {-1, 1}}, 2)}});  // the last position is padding
  expect_close(likelihood, {-0.5, -6}, 0, 0);
  expect_close(count, {1, 2}, 0, 0);
  expect_close(misses, {0, 0}, 0, 0);
  run({{"batch", DimIndex({{-1, 1}, {0, 1}}, 1)}});
  expect_close(likelihood, {0, -12}, 0, 0);
  expect_close(count, {0, 3}, 0, 0);
}

TEST(ReferenceSampleScores, LogitsThatAreNoNumbersAreNoMatch) {
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  const Shape one = {{"batch", 1}, {"seq", 1}};
  Tensor lse(one, DType::f64, {nothing}), target(one, DType::f64, {nothing}), top(one, DType::f64, {nothing}),
      labels(one, DType::i32, {3});
  Tensor likelihood({{"batch", 1}}, DType::f64), count = likelihood, misses = likelihood;
  run_reference({.kind = "sample_scores"}, {&lse, &target, &labels, &top}, {&likelihood, &count, &misses});
  EXPECT_EQ(misses.get(0), 1);
}

}  // namespace
}  // namespace kintsugi::kernels::reference::sample_scores_test
