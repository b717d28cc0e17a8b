// A second loss is an entry of Trunk::losses, added in this file: it has a weight and a metric, and its gradient equals
// that of one rank in any layout.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kintsugi/kernels/random.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/step.h"
#include "tests/layouts.h"

namespace kintsugi::tests::seams_loss_test {
namespace {

constexpr double kWeight = 0.03;

// Half the sum of squares of the last layer's output, twice, as one metric.
models::Trunk with_spread(models::Builder& b) {
  models::Trunk trunk = models::transformer(b);
  graph::Graph& g = b.graph();
  const graph::ValueId squares = g.contract(trunk.x, trunk.x, "", tensor::DType::f64);
  trunk.losses.push_back({"spread", g.scale(squares, 0.5), kWeight});
  return trunk;
}

config::Settings model() {
  config::Settings s = small_model("llama", "fp64");
  s.model.context = s.train.sequence = 8;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  return s;
}

train::LayoutRun run_of(const config::Settings& s, models::BuildTrunk build) {
  return train::LayoutRun(s, std::nullopt, {}, comm::thread_worlds, models::Logits::none, build);
}

double spread_of(const train::LayoutRun& run) {
  return run.executor(0).number(std::string(models::kFurtherLoss) + "spread");
}

class LossLayouts : public testing::TestWithParam<const char*> {};

}  // namespace

TEST(SeamsLoss, ItsGradientIsThatOfTheWeightedSum) {
  config::Settings s = model();
  s.train.clip = 0;
  s.model.dropout = 0;
  train::LayoutRun run = run_of(s, with_spread);
  const auto objective = [&] {
    record(run, s, 1, 0.0);
    return run.executor(0).number(models::kLossSum) + kWeight * spread_of(run);
  };
  objective();
  EXPECT_GT(spread_of(run), 0.0);
  const auto gradients = run.states(program::StateKind::gradient);
  const double all = norm(gradients);
  for (const auto& [name, g] : gradients) {
    const auto weight = run.executor(0).state(name.substr(0, name.size() - 9)).as<double>();
    const size_t at = kernels::random_word(kernels::random_key(1, name), 0, 0) % weight.size();
    const double before = weight[at], nudge = 1e-5;
    weight[at] = before + nudge;
    const double above = objective();
    weight[at] = before - nudge;
    const double below = objective();
    weight[at] = before;
    EXPECT_NEAR((above - below) / (2 * nudge), g[at], 1e-7 * all) << name << " at " << at;
  }
}

TEST_P(LossLayouts, EqualsOneRank) {
  const config::Settings one = model();
  config::Settings several = one;
  set_layout(several, GetParam());
  train::LayoutRun whole = run_of(one, with_spread), split = run_of(several, with_spread);
  EXPECT_GT(split.ranks(), 1);
  EXPECT_EQ(difference(record(split, several, 2), record(whole, one, 2), 1e-9), "");
  for (int rank = 0; rank < split.ranks(); ++rank)
    EXPECT_NEAR(split.executor(rank).number(std::string(models::kFurtherLoss) + "spread"), spread_of(whole),
                1e-9 * spread_of(whole));
}

INSTANTIATE_TEST_SUITE_P(SeamsLoss, LossLayouts,
                         testing::Values("data=2", "data=2 zero=3", "tensor=2 sequence_parallel", "context=2",
                                         "pipe=2"),
                         [](const auto& info) { return fmt::format("Layout{}", info.index); });

}  // namespace kintsugi::tests::seams_loss_test
