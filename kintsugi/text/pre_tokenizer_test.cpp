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

Words cut_by(std::string_view pattern, std::string_view text) {
  return split(PreTokenizer({SplitPattern(pattern, false, "t")}), text);
}

// Expected: the output of Hugging Face's tokenizers.
TEST(PreTokenizer, ReadsPatternsAsOnigurumaDoes) {
  EXPECT_EQ(cut_by(R"([\p{L}&&[^c]]+)", "abcab"), (Words{"ab", "c", "ab"}));
  EXPECT_EQ(cut_by(" ?[^(\\s|[.,!?…。，、।۔،])]+", "ab, (ab)"), (Words{"ab", ", (", "ab", ")"}));
  EXPECT_EQ(cut_by("(?<=[a-z])(?=[A-Z])", "aBc"), (Words{"a", "Bc"}));
  EXPECT_EQ(cut_by(R"(^\w)", "ab\nab"), (Words{"a", "b\n", "a", "b"}));
  EXPECT_EQ(cut_by(R"(\h)", "abg"), (Words{"a", "b", "g"}));
  EXPECT_EQ(cut_by("[a[0-9]]+", "a1b2"), (Words{"a1", "b", "2"}));
  EXPECT_EQ(cut_by(R"((?=(\d{3})+(?!\d)))", "1234567"), (Words{"1", "234", "567"}));
  EXPECT_EQ(cut_by("a{,2}b", "aaab"), (Words{"a", "aab"}));
  EXPECT_EQ(cut_by(R"(a$)", "a\na"), (Words{"a", "\n", "a"}));
  EXPECT_EQ(cut_by(R"(\w\b)", "a² b"), (Words{"a", "²", " ", "b"}));
  EXPECT_EQ(cut_by("(?i)ss", "aß"), (Words{"a", "ß"}));
  EXPECT_EQ(cut_by(R"([\pL]+)", "apLa"), (Words{"a", "pL", "a"}));
  EXPECT_EQ(cut_by("[^.](?i:[^[a&&b]]d)", "'sSd"), (Words{"'", "sSd"}));  // any one character, not "sS" for "ß"
  EXPECT_EQ(cut_by(R"(.+\R)", "a\nb"), (Words{"a\n", "b"}));
  EXPECT_EQ(cut_by(R"((?<=\R))", "a\n\nb"), (Words{"a\n\nb"}));  // which it takes for two characters
  EXPECT_EQ(cut_by("[[K&&é]-]", "a-\u0e4b"), (Words{"a", "-", "\u0e4b"}));
}

// Letters and digits of Unicode 15 and 16, in both engines.
TEST(PreTokenizer, KnowsCharactersOfUnicode16) {
  const std::string letters = "a\U00031350\U000105C0", digits = "1\U00010D40\U0001E4F0";
  for (const char* pattern : {R"(\p{L}+|\p{N}+)", R"([^\P{L}]+|^\d+|\d+)"}) {
    EXPECT_EQ(cut_by(pattern, letters + digits), (Words{letters, digits})) << pattern;
  }
  EXPECT_EQ(cut_by(R"((?i)\x{10d50}+)", "\U00010D50\U00010D70-"), (Words{"\U00010D50\U00010D70", "-"}));
  EXPECT_EQ(cut_by(R"([^\s\p{L}]+)", "-\U00031350"), (Words{"-", "\U00031350"}));
}

TEST(PreTokenizer, SaysWhatIsWrongWithAPattern) {
  const auto error_of = [](std::string_view pattern) -> std::string {
    try {
      SplitPattern(pattern, false, "x.json");
    } catch (const base::UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of("a(b"),
            "[tokenizer] x.json: the pattern \"a(b\" is wrong: end pattern with unmatched parenthesis");
  EXPECT_EQ(error_of("\\p{Klingon}"),
            "[tokenizer] x.json: the pattern \"\\p{Klingon}\" names the property \"Klingon\", which Unicode 16.0 does "
            "not have");
  EXPECT_EQ(error_of("(?D:[^[^\\D]])"),
            "[tokenizer] x.json: the pattern \"(?D:[^[^\\D]])\" has brackets of a kind that is not supported");
}

}  // namespace
}  // namespace kintsugi::text::pre_tokenizer_test
