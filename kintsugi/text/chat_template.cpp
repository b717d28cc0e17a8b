// The formats follow the models' own cards: ChatML (OpenAI 2023), Llama 2 (Touvron et al. 2023b, appendix A.3.3 and the
// published code), Llama 3 (the Llama team 2024, section 4.1, and the published tokenizer), Mistral 7B Instruct v0.1
// and v0.2, v0.3, Gemma 2 and 3, Qwen3 (answers that end a conversation begin without thoughts); gpt-oss (OpenAI 2025,
// harmony: a fixed date, no thoughts); and texts as they are.
#include "kintsugi/text/chat_template.h"

#include <array>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"

namespace kintsugi::text {
namespace {

constexpr std::array<ChatTemplate, 9> kTemplates = {{
    {.name = "chatml",
     .system = "<|im_start|>system\n{}<|im_end|>\n",
     .user = "<|im_start|>user\n{}<|im_end|>\n",
     .assistant = "<|im_start|>assistant\n{}<|im_end|>\n",
     .answer = "<|im_start|>assistant\n",
     .stop = "<|im_end|>"},
    {.name = "llama2",
     .system = "<<SYS>>\n{}\n<</SYS>>\n\n",
     .user = "[INST] {} [/INST]",
     .assistant = " {} </s><s>",
     .answer = "",
     .stop = "</s>",
     .joined = true,
     .trimmed = true},
    {.name = "llama3",
     .system = "<|start_header_id|>system<|end_header_id|>\n\n{}<|eot_id|>",
     .user = "<|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|>",
     .assistant = "<|start_header_id|>assistant<|end_header_id|>\n\n{}<|eot_id|>",
     .answer = "<|start_header_id|>assistant<|end_header_id|>\n\n",
     .stop = "<|eot_id|>",
     .trimmed = true},
    {.name = "mistral",
     .system = "{}\n\n",
     .user = "[INST] {} [/INST]",
     .assistant = "{}</s>",
     .answer = "",
     .stop = "</s>",
     .joined = true},
    {.name = "mistral-v3",
     .system = "{}\n\n",
     .user = "[INST] {}[/INST]",
     .assistant = " {}</s>",
     .answer = "",
     .stop = "</s>",
     .joined = true},
    {.name = "gemma",
     .system = "{}\n\n",
     .user = "<start_of_turn>user\n{}<end_of_turn>\n",
     .assistant = "<start_of_turn>model\n{}<end_of_turn>\n",
     .answer = "<start_of_turn>model\n",
     .stop = "<end_of_turn>",
     .joined = true,
     .trimmed = true},
    {.name = "qwen3",
     .system = "<|im_start|>system\n{}<|im_end|>\n",
     .user = "<|im_start|>user\n{}<|im_end|>\n",
     .assistant = "<|im_start|>assistant\n{}<|im_end|>\n",
     .answer = "<|im_start|>assistant\n",
     .stop = "<|im_end|>",
     .last = "<think>\n\n</think>\n\n"},
    {.name = "gpt-oss",
     .system = "<|start|>developer<|message|># Instructions\n\n{}\n\n<|end|>",
     .user = "<|start|>user<|message|>{}<|end|>",
     .assistant = "<|start|>assistant<|channel|>final<|message|>{}<|end|>",
     .answer = "<|start|>assistant",
     .stop = "<|end|>",
     .begin = "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
              "Knowledge cutoff: 2024-06\nCurrent date: 2025-08-05\n\nReasoning: medium\n\n"
              "# Valid channels: analysis, commentary, final. Channel must be included for every message.<|end|>",
     .last_stop = "<|return|>"},
    {.name = "none", .system = "{}", .user = "{}", .assistant = "{}", .answer = "", .stop = ""},
}};

std::string filled(std::string_view format, std::string_view content) {
  const size_t at = format.find("{}");
  return std::string(format.substr(0, at)) + std::string(content) + std::string(format.substr(at + 2));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  const size_t first = text.find_first_not_of(kSpace);
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
}

// As the turn has it: a joined system's text keeps its white space.
std::string_view content_of(const ChatTemplate& chat, const Message& message) {
  const bool keeps = !chat.trimmed || (chat.joined && message.role == Role::system);
  return keeps ? message.content : trimmed(message.content);
}

// The user speaks first, or after the system, then alternates with the assistant. Returns whether the user is next.
bool require_order(std::span<const Message> messages) {
  bool user = true;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (i == 0 && messages[i].role == Role::system) continue;
    if (messages[i].role != (user ? Role::user : Role::assistant))
      throw base::UserError("chat", "turn {} must be the {}'s", i + 1, user ? "user" : "assistant");
    user = !user;
  }
  return user;
}

void require_turns(std::span<const Message> messages) {
  if (require_order(messages))
    throw base::UserError("chat", "the last turn must be the user's, which the model answers");
}

// The assistant's turn after `answer`, up to the end of the stop text; `last`: that ends the conversation.
std::string spoken(const ChatTemplate& chat, bool last) {
  std::string_view turn = chat.assistant;
  turn.remove_prefix(chat.answer.size());
  if (chat.stop.empty()) return std::string(turn);
  const std::string_view stop = last && !chat.last_stop.empty() ? chat.last_stop : chat.stop;
  return std::string(turn.substr(0, turn.rfind(chat.stop))) + std::string(stop);
}

}  // namespace

std::span<const ChatTemplate> chat_templates() {
  return kTemplates;
}

const ChatTemplate& chat_template(std::string_view name) {
  std::string names;
  for (const ChatTemplate& chat : kTemplates) {
    if (chat.name == name) return chat;
    names += (names.empty() ? "" : ", ") + std::string(chat.name);
  }
  throw base::UserError("chat", "unknown format {}; known formats: {}", base::in_quotes(base::one_line(name, 40)),
                        names);
}

std::string format_chat(const ChatTemplate& chat, std::span<const Message> messages) {
  require_turns(messages);
  std::string text(chat.begin), before;  // the content of the next turn
  for (const Message& message : messages) {
    const std::string content = before + std::string(content_of(chat, message));
    before.clear();
    switch (message.role) {
      case Role::system:
        (chat.joined ? before : text) += filled(chat.system, content);
        break;
      case Role::user:
        text += filled(chat.user, content);
        break;
      case Role::assistant:
        text += filled(chat.assistant, content);
        break;
    }
  }
  return text + std::string(chat.answer);
}

std::vector<ChatPart> render_chat(const ChatTemplate& chat, std::span<const Message> messages) {
  if (!require_order(messages) || messages.empty() || messages.back().role != Role::assistant)
    throw base::UserError("chat", "no answer: the last turn must be the assistant's");
  std::vector<ChatPart> parts;
  std::string before;
  const auto add = [&](std::string_view text, bool answer) {
    if (parts.empty() || parts.back().answer != answer) parts.push_back({.text = {}, .answer = answer});
    parts.back().text += text;
  };
  if (!chat.begin.empty()) add(chat.begin, false);
  for (size_t i = 0; i < messages.size(); ++i) {
    const Message& message = messages[i];
    const std::string content = before + std::string(content_of(chat, message));
    before.clear();
    if (message.role == Role::assistant) {
      add(chat.answer, false);
      const bool last = i + 1 == messages.size();
      add(filled(spoken(chat, last), (last ? std::string(chat.last) : std::string()) + content), true);
      add(after_answer(chat), false);
    } else if (message.role == Role::user) {
      add(filled(chat.user, content), false);
    } else {
      chat.joined ? void(before += filled(chat.system, content)) : add(filled(chat.system, content), false);
    }
  }
  return parts;
}

std::string_view after_answer(const ChatTemplate& chat) {
  if (chat.stop.empty()) return "";
  return chat.assistant.substr(chat.assistant.find(chat.stop) + chat.stop.size());
}

std::optional<int32_t> stop_token(const Tokenizer& tokenizer, const ChatTemplate& chat) {
  if (chat.stop.empty()) return tokenizer.end_of_text();
  const std::string_view stop = chat.last_stop.empty() ? chat.stop : chat.last_stop;
  if (const auto control = tokenizer.control_token(stop)) return control;
  const std::vector<int32_t> ids = tokenizer.encode(stop);
  return ids.size() == 1 ? std::optional(ids[0]) : std::nullopt;
}

void encode_chat(const Tokenizer& tokenizer, std::string_view text, bool first, std::vector<int32_t>& ids) {
  const auto encode = [&](std::string_view part) {
    if (part.empty()) return;
    first ? tokenizer.encode(part, ids) : tokenizer.encode_continued(part, ids);
    first = false;
  };
  size_t begin = 0;
  for (size_t at = 0; (at = text.find('<', at)) != text.npos; ++at)
    for (const std::string_view marker : {"<s>", "</s>"}) {
      const auto id = text.substr(at).starts_with(marker) ? tokenizer.control_token(marker) : std::nullopt;
      if (!id) continue;
      encode(text.substr(begin, at - begin));
      ids.push_back(*id);
      begin = at + marker.size();
      first = marker == "<s>";  // a text begins
    }
  encode(text.substr(begin));
}

const ChatTemplate* recognize_chat(std::string_view jinja) {
  const auto has = [&](std::string_view text) { return jinja.find(text) != jinja.npos; };
  // Applies the first rule whose text occurs.
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {"<|start_header_id|>", "llama3"},   {"<start_of_turn>", "gemma"},
      {"<|channel|>", "gpt-oss"},          {"</think>", "qwen3"},
      {"<|im_start|>", "chatml"},          {"<<SYS>>", "llama2"},
      {"[AVAILABLE_TOOLS]", "mistral-v3"}, {"[INST]", "mistral"}};
  for (const auto& [text, name] : kRules)
    if (has(text) && (name != "qwen3" || has("<|im_start|>"))) return &chat_template(name);
  return nullptr;
}

const ChatTemplate* find_chat_template(const std::filesystem::path& folder) {
  constexpr base::MostBytes kMost = {64 << 20, "a chat template"};
  std::error_code error;
  std::filesystem::path path = folder / "chat_template.jinja";
  std::string jinja;
  if (std::filesystem::exists(path, error)) {
    jinja = base::read_file(path, kMost);
  } else if (path = folder / "tokenizer_config.json"; std::filesystem::exists(path, error)) {
    const base::Json config = base::Json::parse("chat", path.string(), base::read_file(path, kMost));
    auto found = config.find("chat_template");
    if (!found || found->is_null()) return nullptr;
    if (found->is_list()) {  // of named templates
      if (found->list().empty()) return nullptr;
      found = found->list()[0].at("template");
    }
    jinja = found->text();
  } else {
    return nullptr;
  }
  const ChatTemplate* chat = recognize_chat(jinja);
  if (!chat) {
    std::string names;
    for (const ChatTemplate& known : kTemplates) names += (names.empty() ? "" : ", ") + std::string(known.name);
    throw base::UserError("chat", "{}: the chat template is none of {}; name the one that is like it",
                          base::in_quotes(path.string()), names);
  }
  return chat;
}

}  // namespace kintsugi::text
