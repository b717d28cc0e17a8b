#include "kintsugi/simulate/failures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kintsugi::simulate {
namespace {

// A run with random failures: the fraction of time spent in `segments` segments.
double drawn_share(const Failures& f, double interval, int segments) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> until(1 / f.between);
  double time = 0, failure = until(random);
  const auto goes_on_for = [&](double seconds) {  // false: a failure cut it short
    if (time + seconds <= failure) {
      time += seconds;
      return true;
    }
    time = failure;
    failure = time + until(random);
    return false;
  };
  for (int done = 0; done < segments; ++done)
    while (!goes_on_for(interval + f.write))
      while (!goes_on_for(f.restart)) {
      }
  return segments * interval / time;
}

TEST(Failures, TheShareIsThatOfDrawnFailures) {
  for (const Failures& f : {Failures{.between = 3600, .restart = 300, .write = 30},
                            Failures{.between = 1000, .restart = 400, .write = 200}})
    for (const double interval : {100.0, 500.0, 2000.0})
      EXPECT_NEAR(useful_share(f, interval), drawn_share(f, interval, 200'000), 0.01 * useful_share(f, interval))
          << f.between << " " << interval;
}

TEST(Failures, NoOtherIntervalLeavesMore) {
  for (const double between : {600.0, 36'000.0, 1e7})
    for (const double write : {1.0, 60.0, 900.0}) {
      const Failures f = {.between = between, .restart = 120, .write = write};
      const double best = best_interval(f), share = useful_share(f, best);
      EXPECT_GT(share, 0);
      EXPECT_LT(share, 1);
      for (const double times : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0}) EXPECT_GE(share, useful_share(f, times * best));
    }
}

// With rare failures, Young's square root (1974).
TEST(Failures, RareOnesGiveTheSquareRoot) {
  const Failures f = {.between = 1e8, .restart = 60, .write = 20};
  EXPECT_NEAR(best_interval(f), std::sqrt(2 * f.write * f.between), 1e-3 * best_interval(f));
  EXPECT_NEAR(useful_share(f, best_interval(f)), 1 - std::sqrt(2 * f.write / f.between), 1e-6);
}

TEST(Failures, ARunThatGetsNowhere) {
  EXPECT_EQ(useful_share({.between = 1, .restart = 10, .write = 10}, 1e6), 0);
}

}  // namespace
}  // namespace kintsugi::simulate
