#include "kintsugi/train/stragglers.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace kintsugi::train::stragglers_test {
namespace {

constexpr std::array<const char*, 4> kHosts = {"n1", "n2", "n3", "n4"};

std::string named(const std::vector<BusyRank>& ranks, double step) {
  std::string text;
  for (const SlowRank& s : slow_ranks(ranks, step)) text += in_words(s, kHosts.at(static_cast<size_t>(s.rank))) + "\n";
  return text;
}

TEST(Stragglers, AreNamedWithHowMuchSlowerTheyAre) {
  EXPECT_EQ(named({{0.06}, {0.055}, {0.31}, {0.062}}, 0.33),
            "rank 2 on n3 is a straggler: its step takes 310 ms without waiting, 5.2 times the median of 60.0 ms\n");
}

TEST(Stragglers, AreComparedWithinAStage) {
  EXPECT_EQ(named({{1, 0}, {1.1, 0}, {4, 1}, {4.2, 1}}, 5), "");
  EXPECT_EQ(named({{1, 0}, {2.5, 0}, {4, 1}, {4.2, 1}}, 5),
            "rank 1 on n2 is a straggler: its step takes 2.50 s without waiting, 2.5 times the median of 1.00 s\n");
}

TEST(Stragglers, NeedPeersThatWaitForThem) {
  EXPECT_EQ(named({{1}}, 1), "");
  EXPECT_EQ(named({{0}, {1}}, 1), "");
  EXPECT_EQ(named({{0.1}, {0.2}, {0.1}}, 0.3), "");
  // The step takes its time elsewhere, as in transfers.
  EXPECT_EQ(named({{0.01}, {0.05}, {0.01}}, 0.3), "");
  EXPECT_NE(named({{0.01}, {0.05}, {0.01}}, 0.1), "");
}

std::vector<int> ranks_of(const std::vector<SlowRank>& slow) {
  std::vector<int> ranks;
  for (const SlowRank& s : slow) ranks.push_back(s.median > 0 ? s.rank : -1 - s.rank);
  return ranks;
}

TEST(Stragglers, AreConfirmedByThreeComparisons) {
  const std::vector<SlowRank> none, two = {{2, 5, 1}}, one = {{1, 5, 1}}, both = {{1, 5, 1}, {2, 6, 1}};
  using Ranks = std::vector<int>;
  StragglerWatch watch;
  EXPECT_EQ(ranks_of(watch.add(two)), Ranks{});
  EXPECT_TRUE(watch.undecided());
  EXPECT_EQ(ranks_of(watch.add(two)), Ranks{});
  // A rank that was interrupted is not named.
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ranks_of(watch.add(none)), Ranks{});
  EXPECT_FALSE(watch.undecided());
  EXPECT_EQ(ranks_of(watch.add(two)), Ranks{});
  EXPECT_EQ(ranks_of(watch.add(both)), Ranks{});
  EXPECT_EQ(ranks_of(watch.add(both)), Ranks{2});
  EXPECT_EQ(ranks_of(watch.add(both)), Ranks{1});
  EXPECT_FALSE(watch.undecided());
  // Each is named once, and stays one over a single comparison in which it is not slow.
  EXPECT_EQ(ranks_of(watch.add(none)), Ranks{});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ranks_of(watch.add(both)), Ranks{});
  EXPECT_FALSE(watch.undecided());
  ASSERT_EQ(watch.stragglers().size(), 2u);
  EXPECT_EQ(watch.stragglers()[1].seconds, 6);
  // It recovers once three more find it not slow.
  EXPECT_EQ(ranks_of(watch.add(one)), Ranks{});
  EXPECT_EQ(ranks_of(watch.add(both)), Ranks{});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ranks_of(watch.add(one)), Ranks{});
  EXPECT_EQ(ranks_of(watch.add(one)), Ranks{-3});
  EXPECT_EQ(ranks_of(watch.stragglers()), Ranks{1});
}

// On a machine with more ranks than cores, each rank is sometimes slow.
TEST(Stragglers, AreNotFoundOnANoisyMachine) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> noise(0, 0.35);
  size_t named = 0, slow = 0;
  for (int run = 0; run < 20; ++run) {
    StragglerWatch watch;
    for (int comparison = 0; comparison < 100; ++comparison) {
      std::vector<BusyRank> ranks(64);
      double step = 0;
      for (BusyRank& r : ranks) step = std::max(step, r.seconds = 0.1 * noise(random));
      const std::vector<SlowRank> once = slow_ranks(ranks, step);
      slow += once.size();
      named += watch.add(once).size();
    }
  }
  EXPECT_GT(slow, 100u);
  EXPECT_EQ(named, 0u);
}

}  // namespace
}  // namespace kintsugi::train::stragglers_test
