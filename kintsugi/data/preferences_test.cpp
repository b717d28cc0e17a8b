#include "kintsugi/data/preferences.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/data/test_folder.h"
#include "kintsugi/text/bytes_tokenizer.h"

namespace kintsugi::data::preferences_test {
namespace {

const auto kPlainBytes = text::make_bytes_tokenizer();

// The text of a chat, with its counted answers in brackets.
std::string marked(const ChatIds& chat) {
  std::string text;
  for (size_t i = 0; i < chat.ids.size(); ++i) {
    if (chat.answers[i] && (i == 0 || !chat.answers[i - 1])) text += '(';
    text += chat.ids[i] < 256 ? std::string(1, static_cast<char>(chat.ids[i])) : "$";
    if (chat.answers[i] && (i + 1 == chat.ids.size() || !chat.answers[i + 1])) text += ')';
  }
  return text;
}

std::string error_of_line(const std::string& line) {
  const TestFolder folder;
  folder.write("a.jsonl", line);
  try {
    const Preferences all(folder / "a.jsonl", *kPlainBytes, text::chat_template("chatml"));
  } catch (const base::UserError& error) {
    const std::string what = error.what();
    return what.substr(what.find(":1: ") + 4);
  }
  return "";
}

}  // namespace

TEST(Preferences, ReadTextsAndMessages) {
  const TestFolder folder;
  folder.write("a.jsonl",
               "{\"prompt\": \"p\", \"chosen\": \"good\", \"rejected\": \"bad\"}\n"
               "{\"prompt\": [{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\", \"content\": \"p\"}], "
               "\"chosen\": [{\"role\": \"assistant\", \"content\": \"good\"}], \"rejected\": \"bad\"}\n"
               "{\"chosen\": [{\"role\": \"user\", \"content\": \"p\"}, {\"role\": \"assistant\", \"content\": \"a\"}, "
               "{\"role\": \"user\", \"content\": \"q\"}, {\"role\": \"assistant\", \"content\": \"good\"}], "
               "\"rejected\": [{\"role\": \"user\", \"content\": \"p\"}, {\"role\": \"assistant\", \"content\": "
               "\"a\"}, {\"role\": \"user\", \"content\": \"q\"}, {\"role\": \"assistant\", \"content\": \"bad\"}]}\n");
  const Preferences all(folder / "a.jsonl", *kPlainBytes, text::chat_template("mistral-v3"));
  ASSERT_EQ(all.pairs().size(), 3u);
  EXPECT_EQ(marked(all.pairs()[0].chosen), "[INST] p[/INST]( good</s>)");
  EXPECT_EQ(marked(all.pairs()[0].rejected), "[INST] p[/INST]( bad</s>)");
  EXPECT_EQ(marked(all.pairs()[1].chosen), "[INST] s\n\np[/INST]( good</s>)");
  EXPECT_EQ(marked(all.pairs()[1].rejected), "[INST] s\n\np[/INST]( bad</s>)");
  // Answers that both have do not count.
  EXPECT_EQ(marked(all.pairs()[2].chosen), "[INST] p[/INST] a</s>[INST] q[/INST]( good</s>)");
  EXPECT_EQ(marked(all.pairs()[2].rejected), "[INST] p[/INST] a</s>[INST] q[/INST]( bad</s>)");

  const Preferences plain(folder / "a.jsonl", *kPlainBytes, text::chat_template("none"));
  const std::string end = kPlainBytes->end_of_text() ? "$" : "";
  EXPECT_EQ(marked(plain.pairs()[0].chosen), "p(good" + end + ")");
  EXPECT_NE(plain.fingerprint(), all.fingerprint());
}

TEST(Preferences, NameTheLineOfWhatIsMissing) {
  EXPECT_EQ(error_of_line("{\"prompt\": \"p\", \"chosen\": \"a\"}"),
            "a pair has \"prompt\", \"chosen\" and \"rejected\"");
  EXPECT_EQ(error_of_line("{\"chosen\": \"a\", \"rejected\": \"b\"}"),
            "a pair has \"prompt\", \"chosen\" and \"rejected\"");
  EXPECT_EQ(error_of_line("{\"chosen\": [], \"rejected\": []}"), "no answer: the last turn must be the assistant's");
  EXPECT_EQ(error_of_line("{\"prompt\": [{\"role\": \"assistant\", \"content\": \"a\"}], \"chosen\": \"a\", "
                          "\"rejected\": \"b\"}"),
            "turn 1 must be the user's");
  EXPECT_EQ(error_of_line("{\"prompt\": \"p\", \"chosen\": [{\"role\": \"user\", \"content\": \"a\"}], \"rejected\": "
                          "\"b\"}"),
            "no answer: the last turn must be the assistant's");
}

}  // namespace kintsugi::data::preferences_test
