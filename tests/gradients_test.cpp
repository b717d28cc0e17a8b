// The gradient of every weight of whole models, by name, compared with finite differences in fp64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/random.h"
#include "kintsugi/models/step.h"
#include "tests/small_model.h"

namespace kintsugi::tests::gradients_test {

class Gradients : public testing::TestWithParam<std::string> {};

TEST_P(Gradients, AgreeWithFiniteDifferences) {
  config::Settings s = small_model(GetParam(), "fp64");
  s.data.reset_at_document = GetParam() == "llama";
  s.train.clip = 0;
  Machine machine(s);
  machine.step(0, 0.0);
  const auto gradients = machine.states(program::StateKind::gradient);
  ASSERT_GE(gradients.size(), s.model.family == "mlp" ? 6u : s.model.family == "lenet" ? 10u : 20u);
  const auto loss_sum = [&] {
    machine.step(0, 0.0);
    return machine.executor.number(models::kLossSum);
  };
  double total = 0;
  for (const auto& [name, g] : gradients)
    for (double x : g) total += x * x;
  const double norm = std::sqrt(total), count = machine.executor.number(models::kLossCount);
  EXPECT_NEAR(machine.executor.number(models::kGradientNorm), norm / count, 1e-12 * norm / count);

  for (const auto& [name, g] : gradients) {
    const auto weight = machine.executor.state(name.substr(0, name.size() - 9)).as<double>();
    for (uint64_t draw = 0; draw < 3; ++draw) {
      const size_t at = kernels::random_word(kernels::random_key(draw, name), 0, 0) % weight.size();
      const double before = weight[at], nudge = 1e-5;
      weight[at] = before + nudge;
      const double above = loss_sum();
      weight[at] = before - nudge;
      const double below = loss_sum();
      weight[at] = before;
      EXPECT_NEAR((above - below) / (2 * nudge), g[at], 1e-7 * norm) << name << " at " << at;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Gradients,
                         testing::Values("gpt", "llama", "bert", "bert:classes", "bert:numbers", "mlp", "mlp:classes",
                                         "lenet"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, ':', '_');
                           return name;
                         });

// Weights change, the loss falls, and it falls equally for any number of micro-batches.
TEST(Training, TheLossFallsAndMicroBatchesDoNotMatter) {
  std::vector<std::vector<double>> losses;
  for (int64_t micro_batch : {1, 2, 4}) {
    config::Settings s = small_model("gpt", "fp64");
    s.train.micro_batch = micro_batch;
    Machine machine(s);
    losses.emplace_back();
    for (int64_t step = 0; step < 30; ++step) {
      kernels::Numbers numbers = {.seed = 1, .step = step, .learning_rate = 3e-3};
      machine.executor.run(program::Step::train, numbers, [&](const run::Executor::Inputs& inputs) {
        machine.fill(0, inputs);  // the same samples again and again
        numbers.batch_offset = inputs.micro_batch() * micro_batch;
      });
      losses.back().push_back(machine.executor.number(models::kLossSum) / machine.executor.number(models::kLossCount));
    }
    EXPECT_LT(losses.back().back(), losses.back().front() - 0.5);
    for (size_t i = 0; i < losses.back().size(); ++i) EXPECT_NEAR(losses.back()[i], losses[0][i], 1e-9);
  }
}

}  // namespace kintsugi::tests::gradients_test
