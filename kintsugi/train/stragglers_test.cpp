#include "kintsugi/train/stragglers.h"

#include <gtest/gtest.h>

namespace kintsugi::train::stragglers_test {
namespace {

std::string named(const std::vector<BusyRank>& ranks) {
  const Slowest slowest = slowest_of(ranks);
  return slowest.straggles() ? in_words(slowest, ranks[static_cast<size_t>(slowest.rank)].host) : "";
}

TEST(Stragglers, AreNamedWithHowMuchSlowerTheyAre) {
  EXPECT_EQ(named({{0.06, 0, "n1"}, {0.055, 0, "n2"}, {0.31, 0, "n3"}, {0.062, 0, "n4"}}),
            "rank 2 on n3 is a straggler: its step takes 310 ms without waiting, 5.2 times the median of 60.0 ms");
}

TEST(Stragglers, AreComparedWithinAStage) {
  EXPECT_EQ(named({{1, 0, "n1"}, {1.1, 0, "n2"}, {4, 1, "n3"}, {4.2, 1, "n4"}}), "");
  EXPECT_EQ(named({{1, 0, "n1"}, {2.5, 0, "n2"}, {4, 1, "n3"}, {4.2, 1, "n4"}}),
            "rank 1 on n2 is a straggler: its step takes 2.50 s without waiting, 2.5 times the median of 1.00 s");
}

TEST(Stragglers, NeedPeersAndMilliseconds) {
  EXPECT_EQ(named({{1, 0, "n1"}}), "");
  EXPECT_EQ(named({{0, 0, "n1"}, {1, 0, "n2"}}), "");
  EXPECT_EQ(named({{0.001, 0, "n1"}, {0.005, 0, "n2"}, {0.001, 0, "n3"}}), "");
}

}  // namespace
}  // namespace kintsugi::train::stragglers_test
