#include "kintsugi/base/error.h"

#include <gtest/gtest.h>

#include <array>

namespace kintsugi::base::error_test {

TEST(Error, SaysWhereAndWhat) {
  EXPECT_STREQ(UserError("plan", "{} is not {}", 3, 4).what(), "[plan] 3 is not 4");
  EXPECT_STREQ(InternalError("plan", "lost").what(), "[plan] internal error: lost");
}

TEST(Error, IsOneLineWhateverNamesItHolds) {
  EXPECT_STREQ(UserError("file", "no \"{}\"", "a\nb\x1b\xff é").what(), "[file] no \"a\\nb\\x1b\\xff é\"");
  const std::string message = UserError("file", "no \"{}é\"; {}", std::string(5000, 'a'), std::string(196, 'b')).what();
  EXPECT_LE(message.size(), 400u);
  EXPECT_TRUE(message.starts_with("[file] no \"aaaa"));
  EXPECT_NE(message.find("aaa...aaa"), message.npos) << message;
  EXPECT_TRUE(message.ends_with("aé\"; " + std::string(196, 'b'))) << message;
}

// A message of several short sentences is kept whole.
TEST(Error, ListsAreWhole) {
  std::string list = "no";
  for (int i = 0; i < 8; ++i) list += "; " + std::string(90, 'x');
  EXPECT_EQ(UserError("file", "{}", list).what(), "[file] " + list);
}

TEST(Error, NearestWord) {
  const std::array<std::string, 3> keys = {"layers", "heads", "embed"};
  EXPECT_EQ(nearest("layres", keys), "layers");
  EXPECT_EQ(nearest("head", keys), "heads");
  EXPECT_EQ(edit_distance("abcd", "abdc"), 1);
  EXPECT_EQ(edit_distance("", "abc"), 3);
}

}  // namespace kintsugi::base::error_test
