#include "kintsugi/corpus/minhash.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kintsugi/corpus/words.h"
#include "kintsugi/data/hash.h"

namespace kintsugi::corpus {
namespace minhash_test {
namespace {

TEST(Words, IgnoreCaseAndPunctuation) {
  EXPECT_EQ(word_hashes("The cat, (sat)  on -- the mat."), word_hashes("the CAT sat on\nthe mat"));
  EXPECT_NE(word_hashes("the cat"), word_hashes("thecat"));
  EXPECT_TRUE(word_hashes(" -- , ").empty());
}

TEST(Words, ShinglesAreRunsOfWords) {
  const std::vector<uint64_t> hashes = word_hashes("a b c d");
  EXPECT_EQ(shingles(hashes, 3).size(), 2u);
  EXPECT_EQ(shingles(hashes, 5).size(), 1u);
  EXPECT_EQ(shingles(word_hashes("x b c d"), 3)[1], shingles(hashes, 3)[1]);
  EXPECT_NE(shingles(word_hashes("b a"), 2), shingles(word_hashes("a b"), 2));
  EXPECT_TRUE(shingles({}, 5).empty());
}

TEST(Bands, HalfOfThePairsAtTheThresholdAreFound) {
  for (const double threshold : {0.3, 0.5, 0.7, 0.8, 0.9}) {
    const Bands bands = choose_bands(threshold, 112);
    EXPECT_LE(bands.bands * bands.rows, 112);
    EXPECT_NEAR(bands.probability(threshold), 0.5, 0.25) << threshold;
  }
  EXPECT_NEAR((Bands{14, 8}.probability(0.75)), 1 - std::pow(1 - std::pow(0.75, 8), 14), 1e-15);
}

// Pairs of sets with a known similarity share a band at the predicted rate.
TEST(MinHash, FindsPairsAtTheRateOfTheory) {
  const Bands bands = {14, 8};
  const MinHash hash(bands);
  constexpr int kPairs = 1500, kSize = 120;
  for (const double similarity : {0.5, 0.7, 0.8, 0.9}) {
    const int shared = static_cast<int>(std::lround(2 * kSize * similarity / (1 + similarity)));
    const double exact = static_cast<double>(shared) / (2 * kSize - shared);
    int found = 0;
    for (int pair = 0; pair < kPairs; ++pair) {
      std::vector<uint64_t> a, b;
      const auto element = [&](int i) { return data::mix(static_cast<uint64_t>(pair), static_cast<uint64_t>(i)); };
      for (int i = 0; i < kSize; ++i) {
        a.push_back(element(i));
        b.push_back(element(i < shared ? i : kSize + i));
      }
      const auto ka = hash.keys(a), kb = hash.keys(b);
      bool same = false;
      for (size_t i = 0; i < ka.size(); ++i) same |= ka[i] == kb[i];
      found += same;
    }
    const double p = bands.probability(exact);
    EXPECT_NEAR(static_cast<double>(found) / kPairs, p, 4 * std::sqrt(p * (1 - p) / kPairs) + 0.005) << similarity;
  }
}

}  // namespace
}  // namespace minhash_test
}  // namespace kintsugi::corpus
