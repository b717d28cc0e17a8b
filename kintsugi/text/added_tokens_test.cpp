#include "kintsugi/text/added_tokens.h"

#include <gtest/gtest.h>

namespace kintsugi::text::added_tokens_test {
namespace {

// Tokens as <id>, text in brackets.
std::string show(const AddedTokens& tokens, std::string_view text) {
  std::string shown;
  tokens.split(
      text, [&](std::string_view part) { shown += "[" + std::string(part) + "]"; },
      [&](int32_t id) { shown += "<" + std::to_string(id) + ">"; });
  return shown;
}

TEST(AddedTokens, TakesTheLongestOfTheLeftmost) {
  const AddedTokens tokens({{.id = 1, .content = "ab"}, {.id = 2, .content = "abcd"}, {.id = 3, .content = "bcde"}});
  EXPECT_EQ(show(tokens, "xabcdey"), "[x]<2>[ey]");
  EXPECT_EQ(show(tokens, "abcab"), "<1>[c]<1>");
  EXPECT_EQ(show(tokens, "abc"), "<1>[c]");
  EXPECT_EQ(show(tokens, "a"), "[a]");
  EXPECT_EQ(show(tokens, ""), "");
  EXPECT_EQ(show(AddedTokens({}), "ab"), "[ab]");
}

TEST(AddedTokens, TakesWhiteSpaceWithIt) {
  const AddedTokens left({{.id = 1, .content = "<m>", .lstrip = true}});
  EXPECT_EQ(show(left, "a \u3000\n<m> b<m>"), "[a]<1>[ b]<1>");
  EXPECT_EQ(show(left, " <m> <m>"), "<1><1>");
  const AddedTokens right({{.id = 1, .content = "<m>", .rstrip = true}});
  EXPECT_EQ(show(right, "a <m> \u00A0b<m> "), "[a ]<1>[b]<1>");
}

TEST(AddedTokens, StandsAlone) {
  const AddedTokens word({{.id = 1, .content = "low", .single_word = true}});
  EXPECT_EQ(show(word, "low slow lower -low- élow low"), "<1>[ slow lower -]<1>[- élow ]<1>");
}

}  // namespace
}  // namespace kintsugi::text::added_tokens_test
