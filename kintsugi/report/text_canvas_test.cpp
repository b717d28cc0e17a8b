#include "kintsugi/report/text_canvas.h"

#include <gtest/gtest.h>

namespace kintsugi::report::text_canvas_test {

using Lines = std::vector<std::string>;

TEST(TextCanvas, WhatDoesNotFitIsLeftOut) {
  TextCanvas canvas(6, 2, Characters::unicode);
  canvas.write(0, 3, "abcdef");
  canvas.write_before(1, 4, "xyz");
  canvas.write(2, 0, "below");
  EXPECT_EQ(canvas.lines(false), (Lines{"   abc", " xyz"}));
}

TEST(TextCanvas, WidthsOfCharacters) {
  EXPECT_EQ(columns_of("e\xcc\x81"), 1);                 // e and an accent over it
  EXPECT_EQ(columns_of("\xe6\xbc\xa2\xe5\xad\x97"), 4);  // two Chinese characters
  EXPECT_EQ(first_columns("\xe6\xbc\xa2\xe5\xad\x97", 3), "\xe6\xbc\xa2");
  TextCanvas canvas(4, 1, Characters::unicode);
  canvas.write(0, 1, "\xe6\xbc\xa2\xe5\xad\x97");
  EXPECT_EQ(canvas.lines(false), (Lines{" \xe6\xbc\xa2"}));
  TextCanvas ascii(8, 1, Characters::ascii);
  ascii.write(0, 0,
              "a\xe6\xbc\xa2"
              "b\x1b"
              "c");
  EXPECT_EQ(ascii.lines(false), (Lines{"a?b\\x1bc"}));
}

TEST(TextCanvas, Colours) {
  TextCanvas canvas(9, 1, Characters::unicode);
  canvas.write(0, 0, "ab", Ink::strong);
  canvas.write(0, 3, "c", Ink::first);
  canvas.write(0, 5, "d");
  EXPECT_EQ(canvas.lines(true), (Lines{"\x1b[1mab \x1b[0m\x1b[36mc \x1b[0md"}));
}

}  // namespace kintsugi::report::text_canvas_test
