#include "kintsugi/base/error.h"

#include <gtest/gtest.h>

#include <array>

namespace kintsugi::base {

TEST(Error, SaysWhereAndWhat) {
  EXPECT_STREQ(UserError("plan", "{} is not {}", 3, 4).what(), "[plan] 3 is not 4");
  EXPECT_STREQ(InternalError("plan", "lost").what(), "[plan] internal error: lost");
}

TEST(Error, NearestWord) {
  const std::array<std::string, 3> keys = {"layers", "heads", "embed"};
  EXPECT_EQ(nearest("layres", keys), "layers");
  EXPECT_EQ(nearest("head", keys), "heads");
  EXPECT_EQ(edit_distance("abcd", "abdc"), 1);
  EXPECT_EQ(edit_distance("", "abc"), 3);
}

}  // namespace kintsugi::base
