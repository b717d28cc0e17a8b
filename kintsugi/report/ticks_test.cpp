#include "kintsugi/report/ticks.h"

#include <gtest/gtest.h>

namespace kintsugi::report::ticks_test {

using Numbers = std::vector<double>;

void expect_near(const Numbers& found, const Numbers& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12 * (1 + expected[i]));
}

TEST(Ticks, RoundNumbers) {
  expect_near(ticks(0, 100, 5), {0, 20, 40, 60, 80, 100});
  expect_near(ticks(1, 100'000, 5), {20'000, 40'000, 60'000, 80'000, 100'000});
  expect_near(ticks(-0.3, 0.21, 5), {-0.2, 0, 0.2});
  expect_near(ticks(0, 3e-4, 5), {0, 1e-4, 2e-4, 3e-4});
  expect_near(ticks(7, 7, 5), {7});
  for (double high = 1.1; high < 1e9; high *= 1.7) {
    EXPECT_GE(ticks(1, high, 5).size(), 2u) << high;
    EXPECT_LE(ticks(1, high, 5).size(), 7u) << high;
  }
}

TEST(Ticks, OfLogarithms) {
  expect_near(log_ticks(0.02, 30, 5), {0.1, 1, 10});
  expect_near(log_ticks(1, 100, 5), {1, 2, 5, 10, 20, 50, 100});
  expect_near(log_ticks(3, 4, 5), {3, 4});  // no round number lies between
  for (double high = 101; high < 1e300; high *= 1e7) {
    EXPECT_GE(log_ticks(1, high, 5).size(), 2u) << high;
    EXPECT_LE(log_ticks(1, high, 5).size(), 8u) << high;
  }
}

}  // namespace kintsugi::report::ticks_test
