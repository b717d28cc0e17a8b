#include "kintsugi/text/chat_template.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/text/sentencepiece_tokenizer.h"
#include "kintsugi/text/small_sentencepiece_test.h"

namespace kintsugi::text::chat_template_test {

constexpr std::array<Message, 4> kChat = {
    {{Role::system, "Be brief."}, {Role::user, " Hello? "}, {Role::assistant, "Hi!"}, {Role::user, "Bye"}}};

// As shown on the models' cards, except for the token that begins a text.
TEST(ChatTemplate, FormatsOfTheFamilies) {
  const auto text = [](std::string_view name) { return format_chat(chat_template(name), kChat); };
  EXPECT_EQ(text("chatml"),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hello? <|im_end|>\n<|im_start|>assistant\nHi!"
            "<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(text("llama2"), "[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHello? [/INST] Hi! </s><s>[INST] Bye [/INST]");
  EXPECT_EQ(
      text("llama3"),
      "<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n"
      "\nHello?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nHi!<|eot_id|><|start_header_id|>user"
      "<|end_header_id|>\n\nBye<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(text("mistral"), "[INST] Be brief.\n\n Hello?  [/INST]Hi!</s>[INST] Bye [/INST]");
  EXPECT_EQ(text("mistral-v3"), "[INST] Be brief.\n\n Hello? [/INST] Hi!</s>[INST] Bye[/INST]");
  EXPECT_EQ(text("gemma"),
            "<start_of_turn>user\nBe brief.\n\nHello?<end_of_turn>\n<start_of_turn>model\nHi!<end_of_turn>\n"
            "<start_of_turn>user\nBye<end_of_turn>\n<start_of_turn>model\n");
}

// Content that looks like template markup stays content.
TEST(ChatTemplate, ContentsAreNotFormats) {
  const std::array<Message, 1> chat = {{{Role::user, "{} {1}"}}};
  EXPECT_EQ(format_chat(chat_template("mistral-v3"), chat), "[INST] {} {1}[/INST]");
}

TEST(ChatTemplate, TurnsInAnotherOrder) {
  const auto error = [](std::span<const Message> messages) -> std::string {
    try {
      format_chat(chat_template("chatml"), messages);
    } catch (const base::UserError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error(std::span(kChat).first(3)), "[chat] the last turn must be the user's, which the model answers");
  EXPECT_EQ(error(std::span(kChat).subspan(2)), "[chat] turn 1 must be the user's");
  EXPECT_EQ(error({}), "[chat] the last turn must be the user's, which the model answers");
  EXPECT_THROW(chat_template("alpaca"), base::UserError);
}

// The parts concatenate to the text of the conversation; the answers are the assistant's messages, with the stop text.
TEST(ChatTemplate, PartsSayWhatIsAnswered) {
  const std::array<Message, 5> chat = {{{Role::system, "Be brief."},
                                        {Role::user, "Hello?"},
                                        {Role::assistant, "Hi!"},
                                        {Role::user, "Bye"},
                                        {Role::assistant, "See you."}}};
  for (const ChatTemplate& t : chat_templates()) {
    SCOPED_TRACE(t.name);
    std::string all, answers;
    for (const ChatPart& part : render_chat(t, chat)) {
      all += part.text;
      if (part.answer) answers += part.text + "|";
    }
    const std::string space = t.name == "llama2" || t.name == "mistral-v3" ? " "
                              : t.name == "gpt-oss"                        ? "<|channel|>final<|message|>"
                                                                           : "";
    const std::string before_end = t.name == "llama2" ? " " : "", stop(t.stop),
                      last_stop(t.last_stop.empty() ? t.stop : t.last_stop);
    EXPECT_EQ(answers, space + "Hi!" + before_end + stop + "|" + space + std::string(t.last) + "See you." + before_end +
                           last_stop + "|");
    // Up to the last answer it is the generation prompt.
    const std::string asked = format_chat(t, std::span(chat).first(4));
    EXPECT_EQ(all.substr(0, asked.size()), asked);
    EXPECT_EQ(all.substr(asked.size()),
              space + std::string(t.last) + "See you." + before_end + last_stop + std::string(after_answer(t)));
  }
}

TEST(ChatTemplate, AJoinedSystemKeepsItsWhiteSpace) {
  const std::array<Message, 2> chat = {{{Role::system, " s "}, {Role::user, " u "}}};
  EXPECT_EQ(format_chat(chat_template("gemma"), chat),
            "<start_of_turn>user\n s \n\nu<end_of_turn>\n<start_of_turn>model\n");
  EXPECT_EQ(format_chat(chat_template("llama2"), chat), "[INST] <<SYS>>\n s \n<</SYS>>\n\nu [/INST]");
  EXPECT_EQ(format_chat(chat_template("llama3"), std::span(chat)).find(" s "), std::string::npos);
}

TEST(ChatTemplate, RefusesConversationsWithoutAnAnswer) {
  const auto error = [](std::vector<Message> messages) {
    try {
      render_chat(chat_template("chatml"), messages);
    } catch (const base::UserError& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  const std::string none = "[chat] no answer: the last turn must be the assistant's";
  EXPECT_EQ(error({}), none);
  EXPECT_EQ(error({{Role::system, "a"}}), none);
  EXPECT_EQ(error({{Role::user, "a"}}), none);
  EXPECT_EQ(error({{Role::user, "a"}, {Role::user, "b"}}), "[chat] turn 2 must be the assistant's");
  EXPECT_EQ(error({{Role::assistant, "a"}}), "[chat] turn 1 must be the user's");
}

TEST(ChatTemplate, IsRecognizedByItsContent) {
  const auto name = [](std::string_view jinja) {
    const ChatTemplate* found = recognize_chat(jinja);
    return found ? found->name : "none";
  };
  EXPECT_EQ(name("{{'<|im_start|>' + message['role']}}"), "chatml");
  EXPECT_EQ(name("{{'<|im_start|>'}} {% if '</think>' in content %}"), "qwen3");
  EXPECT_EQ(name("'<|start_header_id|>' + message['role'] + '<|end_header_id|>'"), "llama3");
  EXPECT_EQ(name("bos_token + '[INST] <<SYS>>'"), "llama2");
  EXPECT_EQ(name("bos_token + '[INST] ' + content"), "mistral");
  EXPECT_EQ(name("'[AVAILABLE_TOOLS]' '[INST]'"), "mistral-v3");
  EXPECT_EQ(name("'<start_of_turn>' + role"), "gemma");
  EXPECT_EQ(name("'<|start|>assistant<|channel|>final<|message|>'"), "gpt-oss");
  EXPECT_EQ(name("'### Human: ' + content"), "none");
}

// The SentencePiece encoder never produces control tokens from text, but a chat contains them.
TEST(ChatTemplate, SentencePieceHasItsTokens) {
  const auto tokenizer = make_sentencepiece_tokenizer(small_sentencepiece(2, true), "small.model");
  EXPECT_EQ(stop_token(*tokenizer, chat_template("llama2")), 2);
  EXPECT_EQ(stop_token(*tokenizer, chat_template("chatml")), std::nullopt);
  std::vector<int32_t> ids, answer, question;
  encode_chat(*tokenizer, "low </s><s>lower", true, ids);
  tokenizer->encode("low ", answer);
  tokenizer->encode("lower", question);
  std::vector<int32_t> expected = answer;
  expected.insert(expected.end(), {2, 1});
  expected.insert(expected.end(), question.begin(), question.end());
  EXPECT_EQ(ids, expected);
}

}  // namespace kintsugi::text::chat_template_test
