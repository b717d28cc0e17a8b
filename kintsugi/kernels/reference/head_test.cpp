#include <limits>

#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::head_test {
namespace {

using namespace test;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const Shape kX = {{"batch", 2}, {"seq", 3}, {"embed", 5}};
const Shape kTable = {{"vocab", 7}, {"embed", 5}};
const Shape kLabels = {{"batch", 2}, {"seq", 3}};
const Shape kBias = {{"vocab", 7}};

void check(std::vector<NamedIndex> indices, bool biased) {
  GradientCheck check{.forward = {.kind = "head", .indices = indices},
                      .ins = {random_tensor(kX, DType::f64, 1, -2, 2), random_tensor(kTable, DType::f64, 2),
                              Tensor(kLabels, DType::i32, {0, 6, -1, 3, 9, 2})},
                      .outs = {{kLabels, DType::f64}, {kLabels, DType::f64}},
                      .with_respect_to = {0, 1}};
  if (biased) check.ins.push_back(random_tensor(kBias, DType::f64, 3)), check.with_respect_to.push_back(3);
  check.gradients = [&](auto& ins, auto& outs, auto& dy) {
    std::vector<Tensor> d = {Tensor(kX, DType::f64), Tensor(kTable, DType::f64)};
    if (biased) d.emplace_back(kBias, DType::f64);
    run_reference({.kind = "head_grad", .indices = indices},
                  {&ins[0], &ins[1], &ins[2], biased ? &ins[3] : nullptr, &outs[0], &dy[0], &dy[1]}, pointers(d));
    return d;
  };
  check_gradient(check);
}

TEST(ReferenceHead, Gradient) {
  for (const bool biased : {false, true}) {
    check({}, biased);
    check({{"vocab", DimIndex({{3, 5}, {-1, 2}}, 12)}}, biased);
  }
}

TEST(ReferenceHead, StatisticsAndGradientTogetherAreTheTwo) {
  for (const std::vector<NamedIndex>& indices :
       {std::vector<NamedIndex>{}, {{"vocab", DimIndex({{0, 5}, {-1, 2}}, 5)}}})
    for (const bool biased : {false, true}) {
      Tensor x = random_tensor(kX, DType::f64, 1), table = random_tensor(kTable, DType::f64, 2),
             some = random_tensor(kBias, DType::f64, 5);
      Tensor* bias = biased ? &some : nullptr;
      Tensor labels(kLabels, DType::i32, {0, 4, -1, 3, 9, 2});
      Tensor dlse = random_tensor(kLabels, DType::f64, 3), dtarget = random_tensor(kLabels, DType::f64, 4);
      const auto statistic = [] { return Tensor(kLabels, DType::f64); };
      const auto gradients = [&] {
        std::vector<Tensor> d = {Tensor(kX, DType::f64), Tensor(kTable, DType::f64)};
        if (biased) d.emplace_back(kBias, DType::f64);
        return d;
      };
      const auto expect_same = [](const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
        for (size_t i = 0; i < want.size(); ++i) expect_close(got[i], want[i], 0, 0);
      };
      Tensor lse = statistic(), target = statistic();
      std::vector<Tensor> d = gradients(), of_kept = gradients(), together = gradients();
      run_reference({.kind = "head", .indices = indices}, {&x, &table, &labels, bias}, {&lse, &target});
      run_reference({.kind = "head_grad", .indices = indices}, {&x, &table, &labels, bias, &lse, &dlse, &dtarget},
                    pointers(d));
      Tensor logits({{"batch", 2}, {"seq", 3}, {"vocab", 7}}, DType::f64);
      run_reference({.kind = "head", .indices = indices}, {&x, &table, &labels, bias}, {&lse, &target, &logits});
      run_reference({.kind = "head_grad", .indices = indices},
                    {&x, &table, &labels, bias, &lse, &dlse, &dtarget, &logits}, pointers(of_kept));
      expect_same(of_kept, d);
      Tensor lse2 = statistic(), target2 = statistic();
      std::vector<Tensor*> outs = pointers(together);
      outs.insert(outs.begin(), {&lse2, &target2});
      run_reference({.kind = "head_with_grad", .indices = indices}, {&x, &table, &labels, bias, &dlse, &dtarget}, outs);
      expect_close(lse2, lse, 0, 0);
      expect_close(target2, target, 0, 0);
      expect_same(together, d);
    }
}

TEST(ReferenceHead, ABiasByHand) {
  Tensor x({{"batch", 1}, {"seq", 1}, {"embed", 1}}, DType::f64, {1});
  Tensor table({{"vocab", 2}, {"embed", 1}}, DType::f64, {0, std::log(2.0)});
  Tensor labels({{"batch", 1}, {"seq", 1}}, DType::i32, {1}), bias({{"vocab", 2}}, DType::f64, {0, std::log(3.0)});
  Tensor lse(labels.type().shape, DType::f64), target(labels.type().shape, DType::f64);
  run_reference({.kind = "head"}, {&x, &table, &labels, &bias}, {&lse, &target});
  expect_close(lse, {std::log(7.0)}, 1e-14, 0);
  expect_close(target, {std::log(6.0)}, 1e-14, 0);
}

TEST(ReferenceHead, ByHand) {
  Tensor x({{"batch", 1}, {"seq", 2}, {"embed", 1}}, DType::f64, {1, -1});
  Tensor table({{"vocab", 3}, {"embed", 1}}, DType::f64, {0, std::log(2.0), std::log(5.0)});
  Tensor labels({{"batch", 1}, {"seq", 2}}, DType::i32, {2, -1});
  Tensor lse(labels.type().shape, DType::f64), target(labels.type().shape, DType::f64);
  run_reference({.kind = "head"}, {&x, &table, &labels}, {&lse, &target});
  expect_close(lse, {std::log(8.0), std::log(1.7)}, 1e-14, 0);
  expect_close(target, {std::log(5.0), 0}, 1e-14, 0);
}

TEST(ReferenceHead, SharesOfTheVocabularyJoin) {
  Tensor x = random_tensor(kX, DType::f64, 1), table = random_tensor(kTable, DType::f64, 2);
  Tensor labels = random_integers(kLabels, 3, 0, 7), lse(kLabels, DType::f64), target(kLabels, DType::f64);
  run_reference({.kind = "head"}, {&x, &table, &labels}, {&lse, &target});
  // [vocab] padded to 9 over 3: rows 0..2, 3..5, and 6 with two of padding, whose content must not be read.
  std::vector<double> sums(6, 0.0), targets(6, 0.0);
  for (int64_t part = 0; part < 3; ++part) {
    const int64_t here = part < 2 ? 3 : 1;
    Tensor share = filled({{"vocab", 3}, {"embed", 5}}, DType::f64, kInfinity);
    for (int64_t i = 0; i < here * 5; ++i) share.set(i, table.get(part * 15 + i));
    std::vector<tensor::Segment> segments = {{part * 3, here}};
    if (here < 3) segments.push_back({-1, 3 - here});
    Tensor some_lse(kLabels, DType::f64), some_target(kLabels, DType::f64);
    run_reference({.kind = "head", .indices = {{"vocab", DimIndex(segments, 7)}}}, {&x, &share, &labels},
                  {&some_lse, &some_target});
    for (size_t i = 0; i < 6; ++i) {
      sums[i] += std::exp(some_lse.get(static_cast<int64_t>(i)));
      targets[i] += some_target.get(static_cast<int64_t>(i));
    }
  }
  for (double& sum : sums) sum = std::log(sum);
  expect_close(lse, sums, 1e-14, 0);
  expect_close(target, targets, 1e-14, 0);
}

TEST(ReferenceHead, AVocabularyOfPaddingOnly) {
  Tensor x = random_tensor(kX, DType::f64, 1), table = filled(kTable, DType::f64, 0);
  Tensor labels = random_integers(kLabels, 3, 0, 7), lse(kLabels, DType::f64), target(kLabels, DType::f64);
  run_reference({.kind = "head", .indices = {{"vocab", DimIndex({{-1, 7}}, 20)}}}, {&x, &table, &labels},
                {&lse, &target});
  expect_close(lse, filled(kLabels, DType::f64, -kInfinity), 0, 0);
  expect_close(target, filled(kLabels, DType::f64, 0), 0, 0);
}

}  // namespace
}  // namespace kintsugi::kernels::reference::head_test
