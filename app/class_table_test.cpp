#include "app/class_table.h"

#include <gtest/gtest.h>

namespace kintsugi::app::class_table_test {

TEST(ClassTable, BestClasses) {
  const std::vector<float> logits = {0, 2, 2, -1};
  const std::vector<RankedClass> best = best_classes(logits, 3);
  ASSERT_EQ(best.size(), 3u);
  EXPECT_EQ(best[0].number, 1);  // the first of equal ones
  EXPECT_EQ(best[1].number, 2);
  EXPECT_EQ(best[2].number, 0);
  EXPECT_NEAR(best[0].probability, 1 / (2 + 0.1353353 + 0.0497871), 1e-6);
  EXPECT_EQ(best_classes(logits, 9).size(), 4u);
}

TEST(ClassTable, Confusion) {
  Confusion confusion(3);
  const std::vector<float> zero = {5, 1, 1}, one = {1, 5, 1}, two = {1, 1, 5};
  for (int i = 0; i < 3; ++i) confusion.add(0, zero);
  confusion.add(0, two);
  confusion.add(2, one);
  confusion.add(-1, one);
  EXPECT_EQ(confusion.labelled, 5);
  EXPECT_EQ(confusion.first, 3);
  EXPECT_EQ(confusion.among_five, 5);
  EXPECT_EQ(confusion.table(false),
            "label  images  recall  most frequent errors\n"
            "    0       4     75%  2 (1)\n"
            "    2       1      0%  1 (1)\n");
  EXPECT_EQ(confusion.table(true),
            "label       0     1     2\n"
            "    0       3     0     1\n"
            "    2       0     1     0\n");
}

}  // namespace kintsugi::app::class_table_test
