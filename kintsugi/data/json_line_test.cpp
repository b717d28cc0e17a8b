// The fast reader of flat lines gives what the parser gives, or nothing.
#include "kintsugi/data/json_line.h"

#include <gtest/gtest.h>

#include <random>

#include "kintsugi/base/error.h"

namespace kintsugi::data::json_line_test {
namespace {

std::optional<std::string> parsed(std::string_view line) {
  try {
    JsonRepairs repairs;
    const base::Json object = parse_json_line("test", "a", line, 1, repairs);
    const auto found = object.is_object() ? object.find("text") : std::nullopt;
    return found ? std::optional(std::string(found->text())) : std::nullopt;
  } catch (const base::UserError&) {
    return std::nullopt;
  }
}

std::optional<std::string> fast(std::string_view line) {
  return text_of_flat_line(line, "text");
}

}  // namespace

TEST(FlatLine, ReadsWhatMostLinesAre) {
  for (const std::string_view line : {R"({"text": "a b"})", R"({"id":12,"text":"a","more":null,"x":-3,"y":true})",
                                      R"( { "text" : "" , "n" : 0 } )", R"({"text": "a \"b\" \\ \/ \b\f\n\r\t"})",
                                      "{\"text\": \"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\", \"\xc3\xa9\": 1}"}) {
    EXPECT_TRUE(fast(line).has_value()) << line;
    EXPECT_EQ(fast(line), parsed(line)) << line;
  }
}

TEST(FlatLine, LeavesAllElseToTheParser) {
  for (const std::string_view line : {"",
                                      "{}",
                                      "[1]",
                                      "\"text\"",
                                      R"({"text": "a)",
                                      R"({"text": "a"} x)",
                                      R"({"text": "a",})",
                                      R"({"text": "\u0041"})",
                                      R"({"text": "\x"})",
                                      R"({"text": 1})",
                                      R"({"text": ["a"]})",
                                      R"({"other": "a"})",
                                      R"({"text": "a", "text": "b"})",
                                      R"({"te\nxt": "a", "text": "b"})",
                                      R"({"x": {"text": "a"}, "text": "b"})",
                                      R"({"x": 1.5, "text": "b"})",
                                      R"({"x": 01, "text": "b"})",
                                      R"({"x": NaN, "text": "b"})",
                                      R"({"x": nul, "text": "b"})",
                                      R"({"x": -, "text": "b"})",
                                      "{\"text\": \"a\tb\"}",
                                      "{\"text\": \"\xff\"}",
                                      "{\"text\": \"\xed\xa0\x80\"}",
                                      "{\"text\": \"\xc0\xaf\"}"})
    EXPECT_EQ(fast(line), std::nullopt) << line;
}

// Lines with random damage: never something else than the parser reads.
TEST(FlatLine, IsNeverAnotherText) {
  const std::string line = R"({"id": 12, "text": "some \"text\" of \u00e9 words\n", "b": true, "c": [1, {"d": null}]})",
                    flat = R"({"id": 12, "text": "some \"text\" of words\n", "b": true, "c": null})";
  std::mt19937 random(5);
  int read = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = i % 4 == 0 ? line : flat;
    for (uint32_t n = random() % 3; n > 0; --n) {
      const size_t at = random() % damaged.size();
      constexpr std::string_view kParts = "\"\\{}[],: tn0u";
      damaged[at] = random() % 2 ? kParts[random() % kParts.size()] : static_cast<char>(random());
    }
    const auto found = fast(damaged);
    if (!found) continue;
    ++read;
    ASSERT_EQ(found, parsed(damaged)) << damaged;
  }
  EXPECT_GT(read, 1000);
}

}  // namespace kintsugi::data::json_line_test
