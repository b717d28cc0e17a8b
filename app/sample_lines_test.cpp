#include "app/sample_lines.h"

#include <gtest/gtest.h>

namespace kintsugi::app::sample_lines_test {

using Lines = std::vector<std::string>;

TEST(SampleLines, BreakWhereTheTextDoesAndBetweenWords) {
  EXPECT_EQ(sample_lines("Once", " upon a time\nthere was\n", 80, 9), (Lines{"  > Once upon a time", "  | there was"}));
  EXPECT_EQ(sample_lines("", "one two three four", 14, 9), (Lines{"  > one two ", "  | three four"}));
  EXPECT_EQ(sample_lines("", "abcdefghijklmnop", 14, 9), (Lines{"  > abcdefghij", "  | klmnop"}));
  EXPECT_EQ(sample_lines("", "", 14, 9), (Lines{"  > "}));
}

TEST(SampleLines, CannotControlATerminal) {
  EXPECT_EQ(sample_lines("", "a\x1b[2Jb\r", 80, 9), (Lines{"  > a\\x1b[2Jb\\r"}));
  EXPECT_EQ(sample_lines("", "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 12, 9),
            (Lines{"  > \xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", "  | \xc3\xa9"}));
}

TEST(SampleLines, WhatIsLeftOutIsTold) {
  EXPECT_EQ(sample_lines("", "1\n2\n3\n4\n5", 80, 3),
            (Lines{"  > 1", "  | 2", "  ... 3 more lines, in metrics.jsonl"}));
}

}  // namespace kintsugi::app::sample_lines_test
