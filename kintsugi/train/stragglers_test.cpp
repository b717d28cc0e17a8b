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

TEST(Stragglers, AreConfirmedInTwoOfThreeMeasurements) {
  const Slowest none = {0, 1.0, 0.9}, two = {2, 5.0, 1.0}, one = {1, 5.0, 1.0};
  Suspicion s;
  EXPECT_FALSE(s.confirms(none));
  EXPECT_FALSE(s.open());
  EXPECT_FALSE(s.confirms(two));
  EXPECT_TRUE(s.open());
  EXPECT_TRUE(s.confirms(two));
  EXPECT_FALSE(s.open());
  // Another is interrupted in between.
  EXPECT_FALSE(s.confirms(one));
  EXPECT_FALSE(s.confirms(two));
  EXPECT_TRUE(s.confirms(two));
  // A rank that was interrupted once is not named.
  EXPECT_FALSE(s.confirms(two));
  EXPECT_FALSE(s.confirms(none));
  EXPECT_FALSE(s.confirms(none));
  EXPECT_FALSE(s.open());
  EXPECT_FALSE(s.confirms(two));
  EXPECT_TRUE(s.open());
}

}  // namespace
}  // namespace kintsugi::train::stragglers_test
