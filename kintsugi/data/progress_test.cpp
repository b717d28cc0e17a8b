#include "kintsugi/data/progress.h"

#include <gtest/gtest.h>

namespace kintsugi::data::progress_test {

TEST(ReadProgress, FitsTheTerminal) {
  const ProgressState small = {.what = "tokenizing", .done = 1'200'000, .total = 2'400'000, .seconds = 2};
  EXPECT_EQ(progress_text(small, true, 79),
            "tokenizing [###############...............] 1.2 of 2.4 MB, 0.6 MB/s, 2.0s left");
  EXPECT_EQ(progress_text(small, false, 0), "tokenizing: 50 %, 1.2 of 2.4 MB, 0.6 MB/s, 2.0s left");
  const ProgressState large = {
      .what = "tokenizing the validation text", .done = 123'456'000'000, .total = 987'654'000'000, .seconds = 100'000};
  EXPECT_EQ(progress_text(large, true, 79),
            "tokenizing the validation text [......] 123.5 of 987.7 GB, 1.2 MB/s, 8d02h left");
  for (const int columns : {20, 40, 60, 79}) EXPECT_LE(progress_text(large, true, columns).size(), size_t(columns));
  EXPECT_EQ(progress_text(
                {.what = "merging", .unit = ProgressUnit::merges, .done = 50, .total = 100, .seconds = 5, .last = true},
                false, 0),
            "merging: 50 %, 50 of 100 merges, 10/s, in 5.0s");
  EXPECT_EQ(progress_text({.what = "reading", .total = 100, .seconds = 3}, false, 0),
            "reading: 0 %, 0.0 of 0.0 MB, 0.0 MB/s, 3.0s");
}

}  // namespace kintsugi::data::progress_test
