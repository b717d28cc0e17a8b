#include "app/ensemble.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kintsugi::app::ensemble_test {
namespace {

TEST(Ensemble, AveragesProbabilities) {
  const std::vector<float> a = {0, 0}, b = {std::log(3.0f), 0};  // 1/2 1/2 and 3/4 1/4
  const Mixed mixed = mix({a, b});
  EXPECT_NEAR(std::exp(mixed.log_probabilities[0]), 0.625, 1e-6);
  EXPECT_NEAR(std::exp(mixed.log_probabilities[1]), 0.375, 1e-6);
  const auto h = [](double p) { return -p * std::log(p) - (1 - p) * std::log(1 - p); };
  EXPECT_NEAR(mixed.divergence, h(0.625) - (h(0.5) + h(0.75)) / 2, 1e-7);
}

TEST(Ensemble, TellsWhetherItsMembersAgree) {
  const std::vector<float> a = {1, 0, 0}, b = {2, 1, 0}, c = {0, 1, 0};
  EXPECT_TRUE(mix({a, b}).agree);
  EXPECT_FALSE(mix({a, c}).agree);
  EXPECT_EQ(mix({a, a}).divergence, 0);
}

}  // namespace
}  // namespace kintsugi::app::ensemble_test
