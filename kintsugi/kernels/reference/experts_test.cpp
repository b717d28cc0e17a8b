#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::experts_test {
namespace {

using namespace test;

const Shape kLogits = {{"batch", 2}, {"seq", 3}, {"candidate", 5}},
            kChoices = {{"batch", 2}, {"seq", 3}, {"choice", 2}};

Attributes routing(const std::string& scores, int64_t normalize) {
  return {{"top_k", int64_t{2}}, {"scores", scores}, {"normalize", normalize}, {"scale", 1.5}};
}

}  // namespace

TEST(ReferenceExperts, GradientOfTheRouter) {
  for (const std::string scores : {"softmax", "sigmoid"})
    for (const int64_t normalize : {0, 1}) {
      const Attributes attributes = routing(scores, normalize);
      check_gradient({.forward = {.kind = "route", .attributes = attributes},
                      .ins = {random_tensor(kLogits, DType::f64, 1, -2, 2)},
                      .outs = {{kChoices, DType::f64}, {kChoices, DType::i32}},
                      .with_respect_to = {0},
                      .gradients =
                          [&](auto& ins, auto& outs, auto& douts) {
                            std::vector<Tensor> d = {Tensor(kLogits, DType::f64)};
                            run_reference({.kind = "route_grad", .attributes = attributes},
                                          {&ins[0], &outs[1], &douts[0]}, {&d[0]});
                            return d;
                          },
                      .num_cotangents = 1});
    }
}

TEST(ReferenceExperts, GradientOfTheLossOfBalance) {
  Tensor counts({{"batch", 2}, {"expert", 5}}, DType::i32, {2, 1, 0, 3, 0, 1, 1, 1, 1, 2});
  for (const std::string scores : {"softmax", "sigmoid"}) {
    const Attributes attributes = routing(scores, 1);
    check_gradient(
        {.forward = {.kind = "balance_loss", .attributes = attributes},
         .ins = {random_tensor(kLogits, DType::f64, 1, -2, 2), counts},
         .outs = {{{}, DType::f64}},
         .with_respect_to = {0},
         .gradients = [&](auto& ins, auto&, auto& dy) {
           std::vector<Tensor> d = {Tensor(kLogits, DType::f64)};
           run_reference({.kind = "balance_loss_grad", .attributes = attributes}, {&ins[0], &ins[1], &dy[0]}, {&d[0]});
           return d;
         }});
  }
}

// With equal numbers of tokens the loss of a sample is its number of tokens.
TEST(ReferenceExperts, ABalancedSampleCostsItsTokens) {
  Tensor logits = random_tensor({{"batch", 1}, {"seq", 4}, {"candidate", 2}}, DType::f64, 1),
         counts({{"batch", 1}, {"expert", 2}}, DType::i32, {4, 4}), loss({}, DType::f64);
  run_reference({.kind = "balance_loss", .attributes = routing("softmax", 1)}, {&logits, &counts}, {&loss});
  EXPECT_NEAR(loss.get(0), 4.0, 1e-12);
}

TEST(ReferenceExperts, OfEqualScoresTheLowestExpert) {
  const Shape one = {{"batch", 1}, {"seq", 1}, {"candidate", 4}}, choices = {{"batch", 1}, {"seq", 1}, {"choice", 2}};
  Tensor logits(one, DType::f64, {1, 2, 2, 2}), weights(choices, DType::f64), experts(choices, DType::i32);
  run_reference({.kind = "route", .attributes = routing("softmax", 1)}, {&logits}, {&weights, &experts});
  expect_close(experts, {1, 2}, 0, 0);
  expect_close(weights, {0.75, 0.75}, 1e-12, 0);
}

// The bias affects which experts are selected, but not their weights.
TEST(ReferenceExperts, TheBiasChoosesAlone) {
  const Shape one = {{"batch", 1}, {"seq", 1}, {"candidate", 3}}, choices = {{"batch", 1}, {"seq", 1}, {"choice", 2}};
  Tensor logits(one, DType::f64, {0, 0, 0}), bias({{"candidate", 3}}, DType::f64, {0, 0.2, 0.1}),
      weights(choices, DType::f64), experts(choices, DType::i32);
  run_reference({.kind = "route", .attributes = routing("sigmoid", 0)}, {&logits, &bias}, {&weights, &experts});
  expect_close(experts, {1, 2}, 0, 0);
  expect_close(weights, {0.75, 0.75}, 1e-12, 0);
}

TEST(ReferenceExperts, SlotsAreTakenInTheOrderOfTokens) {
  const Attributes places = {
      {"experts", int64_t{3}}, {"capacity", int64_t{2}}, {"drop", int64_t{1}}, {"layer", int64_t{4}}};
  const Shape choices = {{"batch", 1}, {"seq", 3}, {"choice", 2}};
  Tensor experts(choices, DType::i32, {0, 1, 1, 0, 0, 2}), slots(choices, DType::i32),
      counts({{"batch", 1}, {"expert", 3}}, DType::i32);
  run_reference({.kind = "assign_slots", .attributes = places}, {&experts}, {&slots, &counts});
  expect_close(slots, {0, 2, 3, 1, -1, 4}, 0, 0);
  expect_close(counts, {2, 2, 1}, 0, 0);

  Attributes stops = places;
  stops.set("drop", int64_t{0});
  try {
    run_reference({.kind = "assign_slots", .attributes = stops}, {&experts}, {&slots, &counts});
    FAIL() << "a token has no slot";
  } catch (const base::UserError& error) {
    EXPECT_STREQ(error.what(),
                 "[experts] layer 4: 3 tokens of a sample use expert 0, which has 2 slots for each sample; raise "
                 "train.expert_bound, leave it out for as many slots as can be needed, or set train.expert_overflow = "
                 "\"drop\"");
  }
}

TEST(ReferenceExperts, TheBiasMovesTowardsTheMean) {
  Tensor bias({{"candidate", 3}}, DType::f64, {0, 0, 0}), load({{"candidate", 3}}, DType::f64, {1, 2, 3}),
      finite({}, DType::f64, {1}), next(bias.type());
  run_reference({.kind = "balance_bias", .attributes = {{"rate", 0.5}}}, {&bias, &load, &finite}, {&next});
  expect_close(next, {0.5, 0, -0.5}, 0, 0);
  finite.set(0, 0);
  run_reference({.kind = "balance_bias", .attributes = {{"rate", 0.5}}}, {&bias, &load, &finite}, {&next});
  expect_close(next, {0, 0, 0}, 0, 0);
}

}  // namespace kintsugi::kernels::reference::experts_test
