#include "kintsugi/text/find_cut.h"

#include <gtest/gtest.h>

namespace kintsugi::text {
namespace {

TEST(FindCut, CutsBeforeASpaceBehindALetter) {
  EXPECT_EQ(find_cut("one two three", 8), 7u);
  EXPECT_EQ(find_cut("one two three", 7), 7u);
  EXPECT_EQ(find_cut("one two three", 6), 3u);
  EXPECT_EQ(find_cut("one two three", 13), 13u);
  EXPECT_EQ(find_cut("one1  two three", 8), 8u);  // no such place: where a character begins
  EXPECT_EQ(find_cut("ééééé", 5), 4u);
  EXPECT_EQ(find_cut("😀😀😀", 7), 4u);
  EXPECT_EQ(find_cut("\x80\x80\x80\x80\x80\x80\x80\x80", 6), 6u);
  EXPECT_EQ(find_cut(std::string(200000, 'x') + " y", 200001), 200000u);
  EXPECT_EQ(find_cut("a b" + std::string(200000, 'x'), 100000), 100000u);
}

}  // namespace
}  // namespace kintsugi::text
