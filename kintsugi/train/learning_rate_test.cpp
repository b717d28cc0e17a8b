#include "kintsugi/train/learning_rate.h"

#include <gtest/gtest.h>

namespace kintsugi::train::learning_rate_test {
namespace {

config::Train settings(std::string decay) {
  config::Train t;
  t.learning_rate = 1e-3;
  t.min_learning_rate = 1e-4;
  t.warmup_steps = 100;
  t.decay_steps = 2000;
  t.decay = std::move(decay);
  return t;
}

}  // namespace

TEST(LearningRate, CosineWithWarmUp) {
  const config::Train t = settings("cosine");
  EXPECT_NEAR(learning_rate(t, 0), 1e-3 / 101, 1e-12);
  EXPECT_NEAR(learning_rate(t, 100), 1e-3, 1e-12);
  EXPECT_NEAR(learning_rate(t, 1050), 0.5 * (1e-3 + 1e-4), 1e-12);
  EXPECT_NEAR(learning_rate(t, 2000), 1e-4, 1e-12);
  EXPECT_NEAR(learning_rate(t, 9999), 1e-4, 1e-12);
}

TEST(LearningRate, LinearConstantInverseSquareRoot) {
  EXPECT_NEAR(learning_rate(settings("linear"), 1050), 0.5 * (1e-3 + 1e-4), 1e-12);
  EXPECT_NEAR(learning_rate(settings("constant"), 5000), 1e-3, 1e-12);
  EXPECT_NEAR(learning_rate(settings("inverse_sqrt"), 99), 1e-3 * 100 / 101, 1e-12);
  EXPECT_NEAR(learning_rate(settings("inverse_sqrt"), 100), 1e-3, 1e-12);
  EXPECT_NEAR(learning_rate(settings("inverse_sqrt"), 403), 5e-4, 1e-12);
  EXPECT_NEAR(learning_rate(settings("inverse_sqrt"), 1'000'000), 1e-4, 1e-12);
}

TEST(LearningRate, GrowsWithTheBatch) {
  config::Train t = settings("constant");
  t.global_batch = 1024;
  t.base_batch = 256;
  t.scale_learning_rate = "linear";
  EXPECT_NEAR(learning_rate(t, 200), 4e-3, 1e-12);
  t.scale_learning_rate = "sqrt";
  EXPECT_NEAR(learning_rate(t, 200), 2e-3, 1e-12);
}

TEST(LearningRate, OneCycle) {
  config::Train t = settings("one_cycle");
  t.min_learning_rate = 4e-9;
  t.warmup_steps = 600;
  EXPECT_NEAR(learning_rate(t, 0), 1e-3 / 25, 1e-12);
  EXPECT_NEAR(learning_rate(t, 300), 0.5 * (1e-3 / 25 + 1e-3), 1e-12);
  EXPECT_NEAR(learning_rate(t, 600), 1e-3, 1e-12);
  EXPECT_NEAR(learning_rate(t, 1300), 0.5 * (1e-3 + 4e-9), 1e-12);
  EXPECT_NEAR(learning_rate(t, 2000), 4e-9, 1e-15);
}

TEST(LearningRate, WarmUpStableDecay) {
  config::Train t = settings("wsd");
  t.cooldown_steps = 400;
  EXPECT_NEAR(learning_rate(t, 99), 1e-3 * 100 / 101, 1e-12);
  EXPECT_NEAR(learning_rate(t, 100), 1e-3, 1e-12);
  EXPECT_NEAR(learning_rate(t, 1600), 1e-3, 1e-12);
  EXPECT_NEAR(learning_rate(t, 1800), 0.5 * (1e-3 + 1e-4), 1e-12);
  EXPECT_NEAR(learning_rate(t, 2000), 1e-4, 1e-12);
  EXPECT_NEAR(learning_rate(t, 9999), 1e-4, 1e-12);
}

TEST(LearningRate, Steps) {
  config::Train t = settings("step");
  t.decay_every = 1000;
  t.decay_factor = 0.5;
  EXPECT_NEAR(learning_rate(t, 99), 1e-3 * 100 / 101, 1e-12);
  EXPECT_NEAR(learning_rate(t, 999), 1e-3, 1e-12);
  EXPECT_NEAR(learning_rate(t, 1000), 5e-4, 1e-12);
  EXPECT_NEAR(learning_rate(t, 3500), 1.25e-4, 1e-12);
  EXPECT_NEAR(learning_rate(t, 9999), 1e-4, 1e-12);  // min_learning_rate
}

}  // namespace kintsugi::train::learning_rate_test
