#include "kintsugi/evaluate/stop_text.h"

#include <gtest/gtest.h>

namespace kintsugi::evaluate::stop_text_test {

TEST(StopText, HoldsBackWhatMayBecomeAStop) {
  StopText s({"END", "\n\n"});
  EXPECT_EQ(s.push("abcE"), "abc");
  EXPECT_EQ(s.push("N"), "");
  EXPECT_EQ(s.push("x\n"), "ENx");
  EXPECT_EQ(s.push("y"), "\ny");
  EXPECT_EQ(s.push("zEND more"), "z");
  EXPECT_TRUE(s.found());
  EXPECT_EQ(s.push("more"), "");
  EXPECT_EQ(s.finish(), "");
}

TEST(StopText, GivesTheRestAtTheEnd) {
  StopText s({"END"});
  EXPECT_EQ(s.push("aEN"), "a");
  EXPECT_EQ(s.finish(), "EN");
  StopText none({});
  EXPECT_EQ(none.push("abc"), "abc");
}

}  // namespace kintsugi::evaluate::stop_text_test
