#include "kintsugi/text/utf8.h"

#include <gtest/gtest.h>

namespace kintsugi::text::utf8_test {
namespace {

TEST(Utf8, ReadsBackEveryCharacter) {
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    append_character(code, text);
    ASSERT_EQ(text.size(), code < 0x80 ? 1u : code < 0x800 ? 2u : code < 0x10000 ? 3u : 4u);
    const Character first = read_character(text + "x");
    ASSERT_EQ(first.code, code);
    ASSERT_EQ(first.size, static_cast<int>(text.size()));
    ASSERT_EQ(read_valid_character(text).code, code);
    ASSERT_EQ(read_valid_character(text).size, first.size);
    const Character last = read_last_character("\xE2" + text);
    ASSERT_EQ(last.code, code);
    ASSERT_EQ(last.size, static_cast<int>(text.size()));
    ASSERT_EQ(count_valid(text), text.size());
    ASSERT_EQ(count_unfinished(text), 0u);
    for (size_t cut = 1; cut < text.size(); ++cut) {
      ASSERT_EQ(count_unfinished("a" + text.substr(0, cut)), cut);
      ASSERT_EQ(count_valid(text.substr(0, cut)), 0u);
    }
  }
}

TEST(Utf8, RefusesWhatIsNone) {
  // A lone continuation, overlongs, surrogates, above U+10FFFF, invalid bytes, a truncated character.
  for (const std::string text : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xED\xA0\x80",
                                 "\xED\xBF\xBF", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
                                 "\xF5\x80\x80\x80", "\xFE", "\xFF", "\xE2\x82", "\xC3(", "\xE2(\xA1"}) {
    EXPECT_EQ(read_character(text).size, 0) << testing::PrintToString(text);
    EXPECT_EQ(count_valid("0123456789" + text), 10u) << testing::PrintToString(text);
  }
  EXPECT_EQ(read_character("").size, 0);
  EXPECT_EQ(read_last_character("").size, 0);
  EXPECT_EQ(count_invalid("\xED\xA0\x80\xFF\xE2\x82z"), 6u);
  EXPECT_EQ(count_invalid("z"), 0u);
}

TEST(Utf8, KnowsWhatMayYetBecomeACharacter) {
  EXPECT_EQ(count_unfinished(""), 0u);
  EXPECT_EQ(count_unfinished("ab\xF0\x9F\x98"), 3u);
  EXPECT_EQ(count_unfinished("\xE2\x82"), 2u);
  EXPECT_EQ(count_unfinished("\xED\xA0"), 0u);  // a surrogate cannot be completed
  EXPECT_EQ(count_unfinished("\xF5"), 0u);
  EXPECT_EQ(count_unfinished("\x82\x82\x82"), 0u);
  EXPECT_EQ(count_unfinished("\xC3\xA9"), 0u);
}

TEST(Utf8, NamesCharacters) {
  EXPECT_EQ(describe_character(U'A'), "U+0041 \"A\"");
  EXPECT_EQ(describe_character(U'\n'), "U+000A");
  EXPECT_EQ(describe_character(U'\x85'), "U+0085");
  EXPECT_EQ(describe_character(U'😀'), "U+1F600 \"😀\"");
}

TEST(Utf8, KnowsSpacesAndWords) {
  for (const char32_t c : {U' ', U'\t', U'\n', U'\r', U'\x85', U'\xA0', U'\x2028', U'\x3000'}) EXPECT_TRUE(is_space(c));
  for (const char32_t c : {U'a', U'\0', U'\x180E', U'\x200B', U'\xFEFF'}) EXPECT_FALSE(is_space(c));
  for (const char32_t c : {U'a', U'é', U'9', U'_', U'\x301', U'漢'}) EXPECT_TRUE(is_word(c));
  for (const char32_t c : {U'-', U' ', U'<', U'😀'}) EXPECT_FALSE(is_word(c));
}

}  // namespace
}  // namespace kintsugi::text::utf8_test
