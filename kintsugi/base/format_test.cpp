#include "kintsugi/base/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kintsugi::base::format_test {

TEST(Format, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(1288490188), "1.2 GiB");
  EXPECT_EQ(format_bytes(123u << 20), "123 MiB");
  EXPECT_EQ(format_bytes((1u << 20) - 1), "1.0 MiB");  // not "1024 KiB"
  EXPECT_EQ(format_bytes(std::numeric_limits<uint64_t>::max()), "16.0 EiB");
}

TEST(Format, Counts) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(812), "812");
  EXPECT_EQ(format_count(999.6), "1.0 k");
  EXPECT_EQ(format_count(3.14e6), "3.1 M");
  EXPECT_EQ(format_count(124439808), "124 M");
  EXPECT_EQ(format_count(174.6e9), "175 B");
  EXPECT_EQ(format_count(1.4e12), "1.4 T");
  EXPECT_EQ(format_count(-1500), "-1.5 k");
  EXPECT_EQ(format_count(NAN), "?");
}

TEST(Format, Durations) {
  EXPECT_EQ(format_duration(0), "0.0s");
  EXPECT_EQ(format_duration(0.84), "0.8s");
  EXPECT_EQ(format_duration(9.96), "10s");
  EXPECT_EQ(format_duration(59.7), "1m00s");
  EXPECT_EQ(format_duration(250), "4m10s");
  EXPECT_EQ(format_duration(7500), "2h05m");
  EXPECT_EQ(format_duration(3 * 86400 + 4 * 3600), "3d04h");
  EXPECT_EQ(format_duration(-3), "0.0s");
  EXPECT_EQ(format_duration(INFINITY), "?");
  EXPECT_EQ(format_duration(1e300), "?");
}

TEST(Format, Rates) {
  EXPECT_EQ(format_rate(1.52e11, "FLOP/s"), "152 GFLOP/s");
  EXPECT_EQ(format_rate(1.523e12, "FLOP/s"), "1.52 TFLOP/s");
  EXPECT_EQ(format_rate(15.23e12, "FLOP/s"), "15.2 TFLOP/s");
  EXPECT_EQ(format_rate(999.7e9, "FLOP/s"), "1.00 TFLOP/s");
  EXPECT_EQ(format_rate(9.996, "tokens/s"), "10.0 tokens/s");
  EXPECT_EQ(format_rate(0, "B/s"), "0.00 B/s");
  EXPECT_EQ(format_rate(NAN, "B/s"), "? B/s");
}

TEST(Format, Times) {
  EXPECT_EQ(format_time(1234.5), "1234 s");
  EXPECT_EQ(format_time(0.9996), "1.00 s");
  EXPECT_EQ(format_time(0.0456), "45.6 ms");
  EXPECT_EQ(format_time(999.6e-6), "1.00 ms");
  EXPECT_EQ(format_time(1e-6), "1.00 us");
  EXPECT_EQ(format_time(0), "0.00 us");
  EXPECT_EQ(format_time(NAN), "? s");
}

TEST(Format, Seconds) {
  EXPECT_EQ(format_seconds(13.1), "13.100 s");
  EXPECT_EQ(format_seconds(0.08628), "86.28 ms");
  EXPECT_EQ(format_seconds(5.06e-6), "5.1 us");
}

TEST(Format, Fixed) {
  EXPECT_EQ(format_fixed(5.56789, 4), "5.5679");
  EXPECT_EQ(format_fixed(-123456.5, 1), "-123456.5");
  EXPECT_EQ(format_fixed(1.234567e300, 4), "1.23457e+300");
  EXPECT_EQ(format_fixed(INFINITY, 4), "inf");
}

TEST(Format, Digits) {
  EXPECT_EQ(group_digits(0), "0");
  EXPECT_EQ(group_digits(999), "999");
  EXPECT_EQ(group_digits(-1000), "-1,000");
  EXPECT_EQ(group_digits(1234567), "1,234,567");
  EXPECT_EQ(group_digits(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
}

TEST(Format, Utf8) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("a\u00e9\u20ac\U0001f600"));
  for (const char* bad : {"\x80", "\xc0\xaf", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xff", "a\xe2\x82"}) {
    EXPECT_FALSE(is_utf8(bad)) << one_line(bad);
  }
}

TEST(Format, OneLine) {
  EXPECT_EQ(one_line("plain \u00e9"), "plain \u00e9");
  EXPECT_EQ(one_line("a\nb\tc\r\x1b[0m\x7f\xff"), "a\\nb\\tc\\r\\x1b[0m\\x7f\\xff");
  EXPECT_EQ(one_line("\u009b"), "\\u009b");
  EXPECT_EQ(one_line("a\u202eb\u2066\u061c\u2070"), "a\\u202eb\\u2066\\u061c\u2070");  // directions
  EXPECT_EQ(one_line("abcdef", 3), "abc...");
  EXPECT_EQ(one_line("ab\u20ac", 3), "ab...");  // not through the middle of a character
  EXPECT_EQ(one_line("abc", 3), "abc");
}

TEST(Format, Printable) {
  EXPECT_EQ(printable("two\n\tlines \u00e9"), "two\n\tlines \u00e9");
  EXPECT_EQ(printable("a\r\x1b[0m\x7f\xff\u009b\u202e\u2028"), "a\\r\\x1b[0m\\x7f\\xff\\u009b\\u202e\\u2028");
}

TEST(Format, Counted) {
  EXPECT_EQ(counted(0, "step"), "0 steps");
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(1234, "step"), "1,234 steps");
  EXPECT_EQ(counted(2, "batch", "batches"), "2 batches");
}

TEST(Format, Losses) {
  EXPECT_EQ(format_loss(5.56789), "5.5679");
  EXPECT_EQ(format_loss(1.23456e-5), "1.23e-05");
  EXPECT_EQ(format_loss(-0.0004567), "-4.57e-04");
  EXPECT_EQ(format_loss(0), "0.0000");
  EXPECT_EQ(format_loss(0.000214, 6), "0.000214");
  EXPECT_EQ(format_loss(NAN), "nan");
}

TEST(Format, WithoutMiddle) {
  EXPECT_EQ(without_middle("abcdef", 6), "abcdef");
  EXPECT_EQ(without_middle("abcdefghijklmno", 12), "abc...jklmno");
  EXPECT_EQ(without_middle("ab\u20acdefghij\u20acmnop", 12), "ab...mnop");  // not through the middle of a character
}

}  // namespace kintsugi::base::format_test
