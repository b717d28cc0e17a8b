#include <gtest/gtest.h>

#include <cmath>

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

// Also with the load of another step, and with labels of two of three positions in the second sample.
TEST(ReferenceExperts, GradientOfTheLossOfBalance) {
  Tensor counts({{"batch", 2}, {"expert", 5}}, DType::i32, {2, 1, 0, 3, 0, 1, 1, 1, 1, 2}),
      load({{"candidate", 5}}, DType::f64, {7, 0, 2, 4, 1}),
      labels({{"batch", 2}, {"label_seq", 3}}, DType::i32, {0, 9, 4, -1, 3, 1});
  for (const std::string scores : {"softmax", "sigmoid"})
    for (const bool whole : {false, true}) {
      const Attributes attributes = routing(scores, 1);
      std::vector<Tensor> ins = {random_tensor(kLogits, DType::f64, 1, -2, 2), counts};
      if (whole) ins.insert(ins.end(), {load, labels});
      check_gradient({.forward = {.kind = "balance_loss", .attributes = attributes},
                      .ins = ins,
                      .outs = {{{}, DType::f64}},
                      .with_respect_to = {0},
                      .gradients = [&](auto& given, auto&, auto& dy) {
                        std::vector<Tensor> d = {Tensor(kLogits, DType::f64)};
                        std::vector<Tensor*> of_grad = {&given[0], &given[1], &dy[0]};
                        if (whole) of_grad.insert(of_grad.end(), {&given[2], &given[3]});
                        run_reference({.kind = "balance_loss_grad", .attributes = attributes}, of_grad, {&d[0]});
                        return d;
                      }});
    }
}

TEST(ReferenceExperts, GradientOfTheZLoss) {
  Tensor labels({{"batch", 2}, {"label_seq", 3}}, DType::i32, {0, 9, 4, -1, 3, -1});
  check_gradient({.forward = {.kind = "router_z_loss"},
                  .ins = {random_tensor(kLogits, DType::f64, 1, -2, 2), labels},
                  .outs = {{{}, DType::f64}},
                  .with_respect_to = {0},
                  .gradients = [&](auto& ins, auto&, auto& dy) {
                    std::vector<Tensor> d = {Tensor(kLogits, DType::f64)};
                    run_reference({.kind = "router_z_loss_grad"}, {&ins[0], &dy[0], &ins[1]}, {&d[0]});
                    return d;
                  }});
}

// Of scores 1/2, 1/4, 1/4 and a load of 6, 3, 0 of 9: 3 (1/2 6/9 + 1/4 3/9) for each token, times the share of labels.
TEST(ReferenceExperts, TheLossOfBalanceByALoad) {
  const double two = std::log(2.0);
  Tensor logits({{"batch", 2}, {"seq", 2}, {"candidate", 3}}, DType::f64, {two, 0, 0, two, 0, 0, two, 0, 0, two, 0, 0}),
      counts({{"batch", 2}, {"expert", 3}}, DType::i32, {0, 0, 4, 0, 0, 4}),
      load({{"candidate", 3}}, DType::f64, {6, 3, 0}), nothing({{"candidate", 3}}, DType::f64, {0, 0, 0}),
      labels({{"batch", 2}, {"label_seq", 2}}, DType::i32, {5, 0, -1, 8}), loss({}, DType::f64);
  const test::Trial kind = {.kind = "balance_loss", .attributes = routing("softmax", 1)};
  run_reference(kind, {&logits, &counts, &load, &labels}, {&loss});
  EXPECT_NEAR(loss.get(0), 3 * (3 * (0.5 * 6 / 9 + 0.25 * 3 / 9)), 1e-12);
  run_reference(kind, {&logits, &counts, &nothing, &labels}, {&loss});  // before the first step
  EXPECT_NEAR(loss.get(0), 3.0, 1e-12);
}

// Of equal logits of n experts: the square of log n for each token.
TEST(ReferenceExperts, TheZLossOfEqualLogits) {
  Tensor logits = filled({{"batch", 2}, {"seq", 3}, {"candidate", 4}}, DType::f64, 0.5), loss({}, DType::f64);
  run_reference({.kind = "router_z_loss"}, {&logits}, {&loss});
  const double log_sum = 0.5 + std::log(4.0);
  EXPECT_NEAR(loss.get(0), 6 * log_sum * log_sum, 1e-12);
}

TEST(ReferenceExperts, GradientOfTheBiasesOfExperts) {
  const Shape x = {{"batch", 2}, {"expert", 3}, {"slot", 4}, {"ffn", 5}}, bias = {{"expert", 3}, {"ffn", 5}};
  Tensor counts({{"batch", 2}, {"expert", 3}}, DType::i32, {2, 0, 4, 1, 3, 0});
  check_gradient({.forward = {.kind = "expert_bias"},
                  .ins = {random_tensor(x, DType::f64, 1), random_tensor(bias, DType::f64, 2), counts},
                  .outs = {{x, DType::f64}},
                  .with_respect_to = {0, 1},
                  .gradients = [&](auto& ins, auto&, auto& dy) {
                    std::vector<Tensor> d = {dy[0], Tensor(bias, DType::f64)};
                    for (int64_t i = 0; i < d[0].elements(); ++i)  // slots without a token
                      if (i / 5 % 4 >= static_cast<int64_t>(ins[2].get(i / 20))) d[0].set(i, 0.0);
                    run_reference({.kind = "expert_bias_grad"}, {&dy[0], &ins[2]}, {&d[1]});
                    return d;
                  }});
}

// Slots without a token stay zero.
TEST(ReferenceExperts, BiasesAreAddedToFilledSlots) {
  Tensor x = filled({{"batch", 1}, {"expert", 2}, {"slot", 2}, {"ffn", 1}}, DType::f64, 0.0),
         bias({{"expert", 2}, {"ffn", 1}}, DType::f64, {3, 5}),
         counts({{"batch", 1}, {"expert", 2}}, DType::i32, {2, 1}), y(x.type());
  run_reference({.kind = "expert_bias"}, {&x, &bias, &counts}, {&y});
  expect_close(y, {3, 3, 5, 0}, 0, 0);
}

TEST(ReferenceExperts, GradientOfTheClampedGate) {
  const Shape shape = {{"batch", 3}, {"ffn", 20}};
  const Attributes attributes = {{"clamp", 1.5}, {"slope", 1.702}};
  check_gradient({.forward = {.kind = "clamped_gated", .attributes = attributes},
                  .ins = {random_tensor(shape, DType::f64, 1, -3, 3), random_tensor(shape, DType::f64, 2, -3, 3)},
                  .outs = {{shape, DType::f64}},
                  .with_respect_to = {0, 1},
                  .gradients = [&](auto& ins, auto&, auto& dy) {
                    std::vector<Tensor> d = {Tensor(shape, DType::f64), Tensor(shape, DType::f64)};
                    run_reference({.kind = "clamped_gated_grad", .attributes = attributes}, {&ins[0], &ins[1], &dy[0]},
                                  {&d[0], &d[1]});
                    return d;
                  }});
  Tensor gate({{"ffn", 2}}, DType::f64, {9, -9}), up({{"ffn", 2}}, DType::f64, {9, -9}), y(gate.type());
  run_reference({.kind = "clamped_gated", .attributes = {{"clamp", 7.0}, {"slope", 1.0}}}, {&gate, &up}, {&y});
  expect_close(y, {8 * 7 / (1 + std::exp(-7.0)), -6 * -9 / (1 + std::exp(9.0))}, 1e-12, 0);
}

TEST(ReferenceExperts, GradientOfJoinedHeads) {
  const Shape a = {{"batch", 2}, {"seq", 2}, {"kv_heads", 3}, {"content", 4}},
              b = {{"batch", 2}, {"seq", 2}, {"turned", 2}},
              y = {{"batch", 2}, {"seq", 2}, {"kv_heads", 3}, {"head_dim", 7}};
  const Attributes attributes = {{"width", int64_t{7}}, {"whole", "content turned head_dim"}};
  check_gradient({.forward = {.kind = "join_head_dims", .attributes = attributes},
                  .ins = {random_tensor(a, DType::f64, 1), random_tensor(b, DType::f64, 2)},
                  .outs = {{y, DType::f64}},
                  .with_respect_to = {0, 1},
                  .gradients = [&](auto&, auto&, auto& dy) {
                    std::vector<Tensor> d = {Tensor(a, DType::f64), Tensor(b, DType::f64)};
                    run_reference({.kind = "join_head_dims_grad", .attributes = attributes}, {&dy[0]}, {&d[0], &d[1]});
                    return d;
                  }});
}

// The group of experts 2 and 3 has the largest sum of two, that of 4 and 5 the next; the largest expert is in neither.
TEST(ReferenceExperts, ExpertsOfTheBestGroups) {
  const Shape one = {{"batch", 1}, {"seq", 1}, {"candidate", 6}}, choices = {{"batch", 1}, {"seq", 1}, {"choice", 3}};
  Tensor logits(one, DType::f64, {4, -9, 3, 2, 2, 1}), weights(choices, DType::f64), experts(choices, DType::i32);
  Attributes attributes = routing("sigmoid", 0);
  attributes.set("top_k", int64_t{3});
  attributes.set("groups", int64_t{3});
  attributes.set("groups_per_token", int64_t{2});
  run_reference({.kind = "route", .attributes = attributes}, {&logits}, {&weights, &experts});
  expect_close(experts, {2, 3, 4}, 0, 0);
  Tensor equal(one, DType::f64, {1, 1, 1, 1, 1, 1});  // of equal groups the first
  run_reference({.kind = "route", .attributes = attributes}, {&equal}, {&weights, &experts});
  expect_close(experts, {0, 1, 2}, 0, 0);
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
