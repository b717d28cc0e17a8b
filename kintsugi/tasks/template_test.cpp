#include "kintsugi/tasks/template.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/base/json_writer.h"

namespace kintsugi::tasks::template_test {
namespace {

base::Json json(std::string_view text) {
  return base::Json::parse("tasks", "record", text);
}

std::string render(std::string_view source, std::string_view record) {
  return Template(json(base::json_string(source))).render(json(record));
}

std::string error_of(std::string_view source, std::string_view record) {
  try {
    render(source, record);
    return "";
  } catch (const base::UserError& e) {
    return e.what();
  }
}

TEST(Template, FieldsAreMembersAndPositions) {
  const char* record = R"({"q": {"stem": "Why?"}, "list": ["a", {"b": 7}], "n": 3})";
  EXPECT_EQ(render("Question: {q.stem}\nAnswer:", record), "Question: Why?\nAnswer:");
  EXPECT_EQ(render("{list.0}{list.1.b}{n}", record), "a73");
  EXPECT_EQ(render("{{{n}}}", record), "{3}");
  EXPECT_EQ(render("{}", "\"itself\""), "itself");
}

TEST(Template, FilterOfWikiText) {
  EXPECT_EQ(
      render(
          "{|wikitext}",
          R"(" = = Game = = \n The third @-@ person game , with N or 1 @,@ 000 ( or more ) units : \" good \" . \n N 's")"),
      " == Game ==\nThe third-person game, with 1 or 1,000 (or more) units: \"good\".\nN's");
}

TEST(Template, Filters) {
  EXPECT_EQ(render("{|strip}|", R"("  \u00a0x y\u2003\n")"), "x y|");
  EXPECT_EQ(render("{|lstrip}|", R"("\n x ")"), "x |");
  EXPECT_EQ(render("{|capitalize}", "\"hELLO \xC3\x84.\""), "Hello \xC3\xA4.");
  EXPECT_EQ(render("{|spaces}", "\"high_school_physics\""), "high school physics");
  EXPECT_EQ(render("{|before:_}+{|after:_|strip}", "\"The _ is full. \""), "The +is full.");
  EXPECT_EQ(render("{|without_last_word}+{|last_word}", "\"one two  three\""), "one two +three");
  EXPECT_EQ(render("{|last_word}{|without_last_word}", "\"one\""), "one");
  EXPECT_EQ(render("{|wikihow}", R"(" How [title] Go. [step] Walk  on[a\nb] [x ")"), "How. Go. Walk on[a\nb] [x");
}

TEST(Template, Errors) {
  EXPECT_EQ(error_of("{a", "{}"),
            "[tasks] \"record\":1: the template has \"{\" without \"}\"; a brace itself is \"{{\"");
  EXPECT_EQ(error_of("a}", "{}"),
            "[tasks] \"record\":1: the template has \"}\" without \"{\"; a brace itself is \"}}\"");
  EXPECT_EQ(
      error_of("{a|upper}", "{}"),
      "[tasks] \"record\":1: unknown filter \"upper\"; there are strip, lstrip, capitalize, spaces, before, after, "
      "without_last_word, last_word, wikihow, wikitext");
  EXPECT_EQ(error_of("{a|before}", "{}"), "[tasks] \"record\":1: the filter \"before\" takes an argument, as after:_");
  EXPECT_EQ(error_of("{a.b}", R"({"a": {"c": 1}})"), "[tasks] \"record\":1: \"a.b\" is missing");
  EXPECT_EQ(error_of("{a}", R"({"a": [1]})"), "[tasks] \"record\":1: \"a\" is a list; it should be a text");
  EXPECT_EQ(error_of("{a.2}", R"({"a": [1]})"),
            "[tasks] \"record\":1: \"a\" is a list; it should be a list with position 2");
}

}  // namespace
}  // namespace kintsugi::tasks::template_test
