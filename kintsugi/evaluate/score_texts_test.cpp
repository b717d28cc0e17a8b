#include "kintsugi/evaluate/score_texts.h"

#include <gtest/gtest.h>

#include "kintsugi/evaluate/score_shared.h"

namespace kintsugi::evaluate::score_texts_test {
namespace {

using Lengths = std::vector<int64_t>;

TEST(ChooseLengths, AProgramForEachLengthThatSavesEnough) {
  EXPECT_EQ(choose_lengths(Lengths{}, 16, 1024), Lengths{});
  EXPECT_EQ(choose_lengths(Lengths{5}, 16, 1024), Lengths{16});
  EXPECT_EQ(choose_lengths(Lengths{5}, 16, 8), Lengths{8});
  EXPECT_EQ(choose_lengths(Lengths{1024, 1000}, 16, 1024), Lengths{1024});
  // Equal numbers of short and long texts: two programs. A few slightly shorter ones: one.
  EXPECT_EQ(choose_lengths(Lengths(50, 30), 16, 1024), Lengths{32});
  Lengths both(50, 30);
  both.insert(both.end(), 50, 500);
  EXPECT_EQ(choose_lengths(both, 16, 1024), (Lengths{32, 512}));
  Lengths near(50, 500);
  near.push_back(450);
  EXPECT_EQ(choose_lengths(near, 16, 1024), Lengths{512});
}

TEST(ScoreShared, ChainsAreTextsThatDifferOnlyInTheirScoredTokens) {
  using Ids = std::vector<int32_t>;
  // Two questions after the same example, with three and two choices.
  const std::vector<Ids> ids = {{9, 9, 1, 1, 4}, {9, 9, 1, 1, 5, 6}, {9, 9, 1, 1, 7}, {9, 9, 2, 2, 4}, {9, 9, 2, 2, 5}};
  std::vector<ScoredText> texts;
  for (const Ids& one : ids) texts.push_back({.ids = one, .scored = std::ssize(one) - 4});
  EXPECT_EQ(chains_of(texts), (std::vector<size_t>{3, 2}));
  // A text is read from its first difference on; the token before its first score is read again.
  EXPECT_EQ(tokens_read(texts), 4 + 2 + 1 + 2 + 1);
}

}  // namespace
}  // namespace kintsugi::evaluate::score_texts_test
