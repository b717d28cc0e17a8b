#include "app/prompts.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/model_options.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/text/chat_template.h"

namespace kintsugi::app {
namespace {

constexpr base::MostBytes kMostOfPrompt = {64 << 20, "a prompt"}, kMostOfPrompts = {64 << 20, "a file of prompts"};

std::vector<std::string> lines_of(const std::string& path) {
  std::string text = base::read_file(path, kMostOfPrompts);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);  // some editors begin files with a byte order mark
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string& line = lines.emplace_back(text.substr(at, end - at));
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty())
      throw base::UserError("generate", "\"{}\":{}: empty prompt; write one prompt per line", path, lines.size());
    at = end + 1;
  }
  if (lines.empty()) throw base::UserError("generate", "\"{}\" is empty; write one prompt per line", path);
  return lines;
}

std::vector<std::string> given_texts(const PromptOptions& o) {
  if (!o.lines_file.empty()) return lines_of(o.lines_file);
  if (!o.file.empty()) return {base::read_file(o.file, kMostOfPrompt)};
  return o.given.empty() ? std::vector<std::string>{""} : o.given;
}

// The prompt as the user's turn, after which the model answers.
std::string chat_of(const PromptOptions& o, const std::string& prompt, const text::Tokenizer& tokenizer) {
  const text::ChatTemplate& chat = text::chat_template(o.chat);
  if (!chat.stop.empty() && !text::stop_token(tokenizer, chat))
    throw base::UserError(
        "generate", "--chat {}: the tokenizer has no token \"{}\", so the model was not trained with this template",
        o.chat, chat.stop);
  std::vector<text::Message> messages;
  if (!o.system.empty()) messages.push_back({text::Role::system, o.system});
  messages.push_back({text::Role::user, prompt});
  return text::format_chat(chat, messages);
}

Prompt read_prompt(const PromptOptions& o, const std::string& given, const evaluate::CheckpointModel& model) {
  Prompt prompt = {.given = given, .text = given, .ids = {}, .ids_of_text = 0};
  if (!o.chat.empty()) prompt.text = chat_of(o, given, *model.tokenizer());
  if (o.chat.empty())
    prompt.ids = model.tokenizer()->encode(prompt.text);
  else
    text::encode_chat(*model.tokenizer(), prompt.text, true, prompt.ids);
  prompt.ids_of_text = prompt.ids.size();
  const auto begin = model.tokenizer()->begin_of_document();
  if (model.made_elsewhere()) {
    const std::vector<int32_t> before = model.tokenizer()->special_tokens().before;
    prompt.ids.insert(prompt.ids.begin(), before.begin(), before.end());
  } else if (begin) {
    prompt.ids.insert(prompt.ids.begin(), *begin);
  }
  for (const int32_t id : prompt.ids)
    if (id >= model.settings().model.vocab)
      throw base::UserError("generate",
                            "the prompt contains token id {}, but the model's embedding has {} rows; the tokenizer "
                            "belongs to a different model",
                            id, model.settings().model.vocab);
  // Without a prompt the model starts as at the beginning of a document, or of a line if there are no documents.
  const auto end = model.tokenizer()->end_of_text();
  if (prompt.ids.empty()) prompt.ids = end ? std::vector<int32_t>{*end} : model.tokenizer()->encode("\n");
  return prompt;
}

}  // namespace

void add_prompt_options(const Verb& verb, PromptOptions& o) {
  const Option prompt = verb.any_text_each("--prompt", o.given, "Prompt to continue (repeatable)");
  const Option file = verb.text("--prompt-file", o.file, "The same from a file").excludes(prompt);
  verb.text("--prompts-file", o.lines_file, "A file with one prompt per line").excludes(prompt).excludes(file);
  std::string chats;
  for (const text::ChatTemplate& chat : text::chat_templates())
    chats += (chats.empty() ? "" : ", ") + std::string(chat.name);
  verb.text("--chat", o.chat,
            fmt::format("Treat the prompt as a user message of a chat with template {}; print the answer", chats));
  verb.any_text("--system", o.system, "With --chat: the system prompt");
}

void check_prompt_options(const PromptOptions& o) {
  if (!o.chat.empty()) text::chat_template(o.chat);
  if (o.chat.empty() && !o.system.empty())
    throw base::UserError("generate", "--system needs --chat, the chat template");
}

std::vector<Prompt> read_prompts(const PromptOptions& o, const evaluate::CheckpointModel& model) {
  require_tokenizer("generate", model);
  std::vector<Prompt> prompts;
  for (const std::string& text : given_texts(o)) prompts.push_back(read_prompt(o, text, model));
  return prompts;
}

}  // namespace kintsugi::app
