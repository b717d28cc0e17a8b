#include "kintsugi/text/pre_tokenizer.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"

namespace kintsugi::text::pre_tokenizer_test {
namespace {

using Words = std::vector<std::string>;

Words split(const PreTokenizer& splitter, std::string_view text) {
  Words words;
  splitter.split(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

Words split_gpt2(std::string_view text) {
  return split(PreTokenizer::gpt2(), text);
}

TEST(PreTokenizer, SplitsAsGpt2) {
  EXPECT_EQ(split_gpt2(""), Words());
  EXPECT_EQ(split_gpt2("Hello world"), (Words{"Hello", " world"}));
  EXPECT_EQ(split_gpt2("I'll don't 'RE"), (Words{"I", "'ll", " don", "'t", " '", "RE"}));
  EXPECT_EQ(split_gpt2("a  b \n c  "), (Words{"a", " ", " b", " \n", " c", "  "}));
  EXPECT_EQ(split_gpt2("x1.5 !? ½"), (Words{"x", "1", ".", "5", " !?", " ½"}));
  EXPECT_EQ(split_gpt2("\u00A0é\u3000漢"), (Words{"\u00A0", "é", "\u3000", "漢"}));
  EXPECT_EQ(split_gpt2("\u0085 a"), (Words{"\u0085", " a"}));
  EXPECT_EQ(split_gpt2("\u180E-"), (Words{"\u180E-"}));  // no space, though PCRE2 takes it for one
  EXPECT_EQ(split_gpt2(std::string_view("a\0b", 3)), (Words{"a", std::string("\0", 1), "b"}));
}

TEST(PreTokenizer, KeepsInvalidBytesApart) {
  EXPECT_EQ(split_gpt2("ab\xFF\xFE cd"), (Words{"ab", "\xFF\xFE", " cd"}));
  EXPECT_EQ(split_gpt2("a \xED\xA0\x80\xC3"), (Words{"a", " ", "\xED\xA0\x80\xC3"}));
}

TEST(PreTokenizer, TakesLongRuns) {
  const std::string letters(3 << 20, 'x');
  EXPECT_EQ(split_gpt2(letters + std::string(3 << 20, ' ') + "y"),
            (Words{letters, std::string((3 << 20) - 1, ' '), " y"}));
}

TEST(PreTokenizer, AppliesPatternsInTurn) {
  const PreTokenizer digits({SplitPattern(R"(\p{N})", false, "t"), SplitPattern(kGpt2Pattern, false, "t")});
  EXPECT_EQ(split(digits, "a 12b"), (Words{"a", " ", "1", "2", "b"}));
  const PreTokenizer literal({SplitPattern("a.", true, "t")});
  EXPECT_EQ(split(literal, "aba.c"), (Words{"ab", "a.", "c"}));
  const PreTokenizer empty({SplitPattern("x*", false, "t")});
  EXPECT_EQ(split(empty, "éxxé"), (Words{"é", "xx", "é"}));
  EXPECT_EQ(split(PreTokenizer({}), "a b"), (Words{"a b"}));
  const PreTokenizer spaces({SplitPattern(R"([^\s\]]+|\]|\S)", false, "t")});
  EXPECT_EQ(split(spaces, "a\u180Eb]\u2028"), (Words{"a\u180Eb", "]", "\u2028"}));
}

TEST(PreTokenizer, SaysWhatIsWrongWithAPattern) {
  try {
    SplitPattern("a(b", false, "x.json");
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_STREQ(error.what(),
                 "[tokenizer] x.json: the pattern \"a(b\" is wrong before \"\": missing closing parenthesis");
  }
}

}  // namespace
}  // namespace kintsugi::text::pre_tokenizer_test
