#include "kintsugi/evaluate/token_score.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kintsugi::evaluate::token_score_test {

TEST(ScoreToken, ByTheLogitsBeforeIt) {
  const std::vector<float> logits = {1, 3, 3, -2};
  const TokenScore score = score_token(logits, 0, 3);
  const double lse = std::log(std::exp(1.0) + 2 * std::exp(3.0) + std::exp(-2.0));
  EXPECT_DOUBLE_EQ(*score.log_probability, 1 - lse);
  ASSERT_EQ(score.top.size(), 3u);
  EXPECT_EQ(score.top[0].id, 1);  // the first of equals
  EXPECT_EQ(score.top[1].id, 2);
  EXPECT_EQ(score.top[2].id, 0);
  EXPECT_EQ(*score.log_probability, score.top[2].log_probability);
  EXPECT_TRUE(score_token(logits, 1, 0).top.empty());
}

}  // namespace kintsugi::evaluate::token_score_test
