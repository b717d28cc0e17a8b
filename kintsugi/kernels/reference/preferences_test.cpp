#include <cmath>
#include <limits>

#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::preferences_test {
namespace {

using namespace test;

const Shape kTokens = {{"batch", 2}, {"seq", 3}}, kPairs = {{"batch", 2}};

}  // namespace

TEST(ReferenceWeightedScores, SumLogProbabilitiesBySample) {
  Tensor lse(kTokens, DType::f64, {1, 2, 3, 4, 5, 6}), target(kTokens, DType::f64, {0.5, 0, 1, 1, 2, 0});
  Tensor labels(kTokens, DType::i32, {3, -1, 0, 5, 5, 5}), weights(kTokens, DType::f32, {1, 7, -1, 2, 0, -1});
  Tensor score(kPairs, DType::f64);
  run_reference({.kind = "weighted_scores"}, {&lse, &target, &labels, &weights}, {&score});
  expect_close(score, {-0.5 + 2, -6 + 6}, 0, 0);
  const Trial padded = {.kind = "weighted_scores", .indices = {{"seq", DimIndex({{0, 2}, {-1, 1}}, 2)}}};
  run_reference(padded, {&lse, &target, &labels, &weights}, {&score});
  expect_close(score, {-0.5, -6}, 0, 0);
}

TEST(ReferenceWeightedScores, Gradient) {
  Tensor labels(kTokens, DType::i32, {3, -1, 0, 5, 5, 5}), weights(kTokens, DType::f32, {1, 7, -1, 2, 0, -1});
  check_gradient(
      {.forward = {.kind = "weighted_scores"},
       .ins = {random_tensor(kTokens, DType::f64, 1), random_tensor(kTokens, DType::f64, 2), labels, weights},
       .outs = {{kPairs, DType::f64}},
       .with_respect_to = {0, 1},
       .gradients = [](auto& ins, auto&, auto& dy) {
         std::vector<Tensor> d = {Tensor(kTokens, DType::f64), Tensor(kTokens, DType::f64)};
         run_reference({.kind = "weighted_scores_grad"}, {&ins[2], &ins[3], &dy[0]}, {&d[0], &d[1]});
         return d;
       }});
}

// -log sigmoid(beta (margin - reference)), also where the exponential of either sign is infinite.
TEST(ReferencePreferenceLoss, IsThatOfThePaper) {
  Tensor margin({{"batch", 5}}, DType::f64, {3, -2, 0, 1e5, -1e5}), loss({}, DType::f64), count({}, DType::f64),
      correct({}, DType::f64), reward({}, DType::f64);
  Tensor reference({{"batch", 5}}, DType::f64, {1, 0.5, 0, 0, 0});
  const Trial trial = {.kind = "preference_loss", .attributes = {{"beta", 0.5}}};
  run_reference(trial, {&margin, &reference}, {&loss, &count, &correct, &reward});
  EXPECT_NEAR(loss.get(0), std::log(1 + std::exp(-1.0)) + std::log(1 + std::exp(1.25)) + std::log(2.0) + 0.5e5, 1e-9);
  EXPECT_EQ(count.get(0), 5);
  EXPECT_EQ(correct.get(0), 2);
  EXPECT_NEAR(reward.get(0), 1 - 1.25, 1e-9);

  Tensor none({{"batch", 5}}, DType::f64,
              {1, std::numeric_limits<double>::quiet_NaN(), 0, 0, 0});  // the second: no pair
  run_reference(trial, {&margin, &none}, {&loss, &count, &correct, &reward});
  EXPECT_EQ(count.get(0), 4);
  EXPECT_NEAR(loss.get(0), std::log(1 + std::exp(-1.0)) + std::log(2.0) + 0.5e5, 1e-9);
}

TEST(ReferencePreferenceLoss, Gradient) {
  check_gradient({.forward = {.kind = "preference_loss", .attributes = {{"beta", 0.7}}},
                  .ins = {random_tensor(kPairs, DType::f64, 1), random_tensor(kPairs, DType::f64, 2)},
                  .outs = {{{}, DType::f64}, {{}, DType::f64}, {{}, DType::f64}, {{}, DType::f64}},
                  .with_respect_to = {0},
                  .gradients =
                      [](auto& ins, auto&, auto& dy) {
                        std::vector<Tensor> d = {Tensor(kPairs, DType::f64)};
                        run_reference({.kind = "preference_loss_grad", .attributes = {{"beta", 0.7}}},
                                      {&ins[0], &ins[1], &dy[0]}, {&d[0]});
                        return d;
                      },
                  .num_cotangents = 1});
}

TEST(ReferencePolicyLoss, IsTheWeightedLikelihoodOrTheClippedRatio) {
  const Shape one = {{"batch", 1}, {"seq", 4}};
  // Log-probabilities -1 at each position; sampled with -1, -1.5, -0.5, -1.5: ratios 1, e^0.5, e^-0.5, e^0.5.
  Tensor lse(one, DType::f64, {1, 2, 3, 4}), target(one, DType::f64, {0, 1, 2, 3}),
      labels(one, DType::i32, {1, 1, 1, 1});
  Tensor weights(one, DType::f32, {2, 3, -1, -2}), sampled(one, DType::f64, {-1, -1.5, -0.5, -1.5});
  Tensor loss({}, DType::f64), count({}, DType::f64), gap({}, DType::f64);
  run_reference({.kind = "policy_loss"}, {&lse, &target, &labels, &weights, &sampled}, {&loss, &count, &gap});
  EXPECT_NEAR(loss.get(0), 2 + 3 - 1 - 2, 1e-12);
  EXPECT_EQ(count.get(0), 4);
  EXPECT_NEAR(gap.get(0), 1.5, 1e-12);
  const Trial clipped = {.kind = "policy_loss", .attributes = {{"clip", 0.2}}};
  run_reference(clipped, {&lse, &target, &labels, &weights, &sampled}, {&loss, &count, &gap});
  EXPECT_NEAR(loss.get(0), -2 - 3 * 1.2 + 0.8 + 2 * std::exp(0.5), 1e-6);  // weights are fp32
}

TEST(ReferencePolicyLoss, Gradient) {
  for (const double clip : {0.0, 0.3}) {
    Attributes attributes;
    if (clip > 0) attributes.set("clip", clip);
    Tensor labels(kTokens, DType::i32, {3, -1, 0, 5, 5, 5}), weights(kTokens, DType::f32, {1, 7, -1, 2, 0.5, -1});
    check_gradient({.forward = {.kind = "policy_loss", .attributes = attributes},
                    .ins = {random_tensor(kTokens, DType::f64, 1), random_tensor(kTokens, DType::f64, 2), labels,
                            weights, random_tensor(kTokens, DType::f64, 3)},
                    .outs = {{{}, DType::f64}, {{}, DType::f64}, {{}, DType::f64}},
                    .with_respect_to = {0, 1},
                    .gradients =
                        [&](auto& ins, auto&, auto& dy) {
                          std::vector<Tensor> d = {Tensor(kTokens, DType::f64), Tensor(kTokens, DType::f64)};
                          run_reference({.kind = "policy_loss_grad", .attributes = attributes},
                                        {&ins[0], &ins[1], &ins[2], &ins[3], &ins[4], &dy[0]}, {&d[0], &d[1]});
                          return d;
                        },
                    .num_cotangents = 1});
  }
}

}  // namespace kintsugi::kernels::reference::preferences_test
