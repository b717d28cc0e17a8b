#include "kintsugi/evaluate/score_texts.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace kintsugi::evaluate::score_texts_test
