#include "kintsugi/train/find_rate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kintsugi::train::find_rate_test {

TEST(FindRate, RatesGrowByEqualFactors) {
  EXPECT_DOUBLE_EQ(test_rate(0, 9), 1e-7);
  EXPECT_NEAR(test_rate(1, 9), 1e-6, 1e-15);
  EXPECT_NEAR(test_rate(7, 9), 1.0, 1e-9);
  EXPECT_NEAR(test_rate(8, 9), 10.0, 1e-9);
  EXPECT_DOUBLE_EQ(test_rate(0, 1), 1e-7);
}

TEST(FindRate, SteepestAndLowest) {
  std::vector<RateStep> steps;
  for (int64_t i = 0; i < 161; ++i) {
    const double rate = test_rate(i, 161), power = std::log10(rate);  // falls from 1e-3 on, rises from 1e-1 on
    const double loss = power < -3 ? 4.0 : power < -1 ? 4.0 - (power + 3) : 2.0 + 3 * (power + 1);
    steps.push_back({.rate = rate, .loss = loss});
  }
  const RateTest test = judge_rates(steps, false);
  ASSERT_TRUE(test.steepest && test.lowest);
  EXPECT_GT(*test.steepest, 1e-3);
  EXPECT_LT(*test.steepest, 2e-1);
  EXPECT_GT(*test.lowest, 0.1);
  EXPECT_LT(*test.lowest, 0.5);
  EXPECT_DOUBLE_EQ(test.steps[0].smooth, 4.0);
  EXPECT_DOUBLE_EQ(test.steps[1].smooth, 4.0);
}

TEST(FindRate, NothingFallsNothingIsFound) {
  std::vector<RateStep> steps;
  for (int64_t i = 0; i < 20; ++i)
    steps.push_back({.rate = test_rate(i, 20), .loss = 1.0 + 0.1 * static_cast<double>(i)});
  EXPECT_FALSE(judge_rates(steps, true).steepest);
  EXPECT_TRUE(judge_rates(steps, true).diverged);
  EXPECT_FALSE(judge_rates({}, true).lowest);
}

}  // namespace kintsugi::train::find_rate_test
