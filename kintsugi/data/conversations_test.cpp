#include "kintsugi/data/conversations.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/data/test_folder.h"
#include "kintsugi/text/bytes_tokenizer.h"
#include "kintsugi/text/sentencepiece_tokenizer.h"
#include "kintsugi/text/small_sentencepiece_test.h"

namespace kintsugi::data::conversations_test {
namespace {

const auto kBytes = text::make_bytes_tokenizer();

// The text of a conversation, and that of its answers, each followed by |.
std::pair<std::string, std::string> texts(const Conversations& all, size_t i) {
  std::string answers;
  for (size_t j = 0; j < all.ids(i).size(); ++j) {
    if (all.answers(i)[j] == 0) continue;
    answers += static_cast<char>(all.ids(i)[j]);
    if (j + 1 == all.ids(i).size() || all.answers(i)[j + 1] == 0) answers += '|';
  }
  return {kBytes->decode(all.ids(i)), answers};
}

}  // namespace

TEST(Conversations, ReadsTheFormsOfOthers) {
  const TestFolder folder;
  folder.write(
      "a.jsonl",
      "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": \"assistant\", \"content\": "
      "\"Yo\"}]}\n"
      "\n"
      "{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", \"value\": \"b\"}]}\r\n"
      "{\"instruction\": \"add\", \"input\": \"1 2\", \"output\": \"3\"}\n"
      "{\"question\": \"why\", \"answer\": \"so\", \"more\": 1}");
  const Conversations all(folder / "a.jsonl", *kBytes, text::chat_template("mistral-v3"));
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(texts(all, 0), std::pair(std::string("[INST] Hi[/INST] Yo</s>"), std::string(" Yo</s>|")));
  EXPECT_EQ(texts(all, 1), std::pair(std::string("[INST] a[/INST] b</s>"), std::string(" b</s>|")));
  EXPECT_EQ(texts(all, 2), std::pair(std::string("[INST] add\n1 2[/INST] 3</s>"), std::string(" 3</s>|")));
  EXPECT_EQ(texts(all, 3), std::pair(std::string("[INST] why[/INST] so</s>"), std::string(" so</s>|")));
  EXPECT_EQ(all.line(1), 3);
  const Conversations other(folder / "a.jsonl", *kBytes, text::chat_template("chatml"));
  EXPECT_NE(all.fingerprint(), other.fingerprint());
}

// The mask covers exactly the answers' spans in the text, whatever the contents, including template markers.
TEST(Conversations, MasksAreTheSpansOfAnswers) {
  const TestFolder folder;
  std::mt19937 random(3);
  const std::vector<std::string> words = {"one", " two", "\n", "<|im_end|>", "[INST]", "</s>", "é", "{}", "assistant"};
  const auto content = [&] {
    std::string text;
    for (size_t n = 1 + random() % 6; n > 0; --n) text += words[random() % words.size()];
    return text + "x";
  };
  std::string file;
  std::vector<std::vector<std::string>> conversations;
  for (int i = 0; i < 1000; ++i) {
    std::vector<std::string> turns;
    base::JsonWriter json;
    json.object([&] {
      json.key("messages").list([&] {
        const bool system = random() % 2 == 0;
        for (size_t n = (system ? 1 : 0) + 2 * (1 + random() % 3), at = 0; at < n; ++at) {
          const size_t turn = at + (system ? 0 : 1);
          turns.push_back(content());
          json.object([&] {
            json.key("role").value(turn == 0 ? "system" : turn % 2 == 1 ? "user" : "assistant");
            json.key("content").value(turns.back());
          });
        }
        if (!system) turns.insert(turns.begin(), "");
      });
    });
    file += json.text() + "\n";
    conversations.push_back(std::move(turns));
  }
  folder.write("a.jsonl", file);
  for (const text::ChatTemplate& chat : text::chat_templates()) {
    SCOPED_TRACE(chat.name);
    const Conversations all(folder / "a.jsonl", *kBytes, chat);
    ASSERT_EQ(all.size(), conversations.size());
    const auto trimmed = [&](std::string text) {
      if (!chat.trimmed) return text;
      const size_t first = text.find_first_not_of(" \t\n");
      return text.substr(first, text.find_last_not_of(" \t\n") + 1 - first);
    };
    for (size_t i = 0; i < all.size(); ++i) {
      std::string want;
      for (size_t turn = 2; turn < conversations[i].size(); turn += 2) {
        const bool last = turn + 1 == conversations[i].size();
        const bool spaced = chat.name == "llama2" || chat.name == "mistral-v3";
        const auto end = kBytes->end_of_text();
        const std::string stop = chat.stop.empty() ? (end ? std::string(1, static_cast<char>(*end)) : "")
                                 : last && !chat.last_stop.empty() ? std::string(chat.last_stop)
                                                                   : std::string(chat.stop);
        want += (chat.name == "gpt-oss" ? "<|channel|>final<|message|>" : "");
        want += (spaced ? " " : "") + (last ? std::string(chat.last) : "") + trimmed(conversations[i][turn]) +
                (chat.name == "llama2" ? " " : "") + stop + "|";
      }
      ASSERT_EQ(texts(all, i).second, want);
    }
  }
}

TEST(Conversations, NamesTheLineOfWhatIsWrong) {
  const TestFolder folder;
  const auto error = [&](const std::string& line) {
    const std::string good = "{\"question\": \"a\", \"answer\": \"b\"}\n";
    folder.write("a.jsonl", good + line);
    std::string text =
        error_of([&] { Conversations(folder / "a.jsonl", *kBytes, text::chat_template("chatml"), 125); });
    const std::string path = folder.text("a.jsonl");
    if (const size_t at = text.find(path); at != text.npos) text.replace(at, path.size(), "a.jsonl");
    return text;
  };
  EXPECT_EQ(error("{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}"),
            "[data] \"a.jsonl\":2: no answer: the last turn must be the assistant's");
  EXPECT_EQ(error("{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]}"),
            "[data] \"a.jsonl\":2: turn 1 must be the user's");
  EXPECT_EQ(error("{\"messages\": []}"), "[data] \"a.jsonl\":2: no answer: the last turn must be the assistant's");
  EXPECT_EQ(error("{\"text\": \"a\"}"),
            "[data] \"a.jsonl\":2: a conversation has \"messages\", or \"instruction\" and \"output\"");
  EXPECT_EQ(
      error("{\"messages\": [{\"role\": \"tool\", \"content\": \"a\"}]}"),
      "[data] \"a.jsonl\":2: \"messages[0].role\" is \"tool\"; it should be \"system\", \"user\" or \"assistant\"");
  EXPECT_EQ(
      error("{\"question\": \"a\", \"answer\": \"}\"}"),
      "[data] \"a.jsonl\":2: a token has the id 125, but the model's table has 125 rows: the tokenizer is that of "
      "another model");
  folder.write("a.jsonl", "\n");
  EXPECT_EQ(error_of([&] { Conversations(folder / "a.jsonl", *kBytes, text::chat_template("chatml")); }),
            fmt::format("[data] \"{}\" holds no conversations", folder.text("a.jsonl")));
}

// An answer ends with token 2, </s>, which the model learns to say, and the next question begins with token 1, <s>.
TEST(Conversations, AnswersEndWithTheTokenOfSentencePiece) {
  const auto tokenizer = text::make_sentencepiece_tokenizer(text::small_sentencepiece(2, true), "small.model");
  const TestFolder folder;
  folder.write("a.jsonl",
               R"({"messages": [{"role": "user", "content": "low"}, {"role": "assistant", "content": "lower"},
                   {"role": "user", "content": "er"}, {"role": "assistant", "content": "low"}]})");
  std::string line = base::read_file(folder / "a.jsonl");
  std::erase(line, '\n');
  folder.write("a.jsonl", line);
  const Conversations all(folder / "a.jsonl", *tokenizer, text::chat_template("llama2"));
  std::vector<int32_t> control, answered;
  for (size_t i = 0; i < all.ids(0).size(); ++i) {
    if (all.ids(0)[i] < 3) control.push_back(all.ids(0)[i]);
    if (all.ids(0)[i] == 2) answered.push_back(all.answers(0)[i]);
  }
  EXPECT_EQ(control, (std::vector<int32_t>{1, 2, 1, 2, 1}));
  EXPECT_EQ(answered, (std::vector<int32_t>{1, 1}));
}

}  // namespace kintsugi::data::conversations_test
