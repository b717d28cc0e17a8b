// The formats are those of the models' own cards: ChatML (OpenAI 2023), Llama 2 (Touvron et al. 2023b, appendix A.3.3
// and the published code), Llama 3 (the Llama team 2024, section 4.1, and the published tokenizer), Mistral 7B Instruct
// v0.1 and v0.2, v0.3, Gemma 2 and 3.
#include "kintsugi/text/chat_template.h"

#include <array>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::text {
namespace {

constexpr std::array<ChatTemplate, 6> kTemplates = {{
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

// The user speaks after the system or at the beginning, and then every other time, also last.
void require_turns(std::span<const Message> messages) {
  bool user = true;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (i == 0 && messages[i].role == Role::system) continue;
    if (messages[i].role != (user ? Role::user : Role::assistant))
      throw base::UserError("chat", "turn {} must be the {}'s", i + 1, user ? "user" : "assistant");
    user = !user;
  }
  if (user) throw base::UserError("chat", "the last turn must be the user's, which the model answers");
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
  throw base::UserError("chat", "there is no format {}; there are {}", base::in_quotes(base::one_line(name, 40)),
                        names);
}

std::string format_chat(const ChatTemplate& chat, std::span<const Message> messages) {
  require_turns(messages);
  std::string text, before;  // the content of the next turn
  for (const Message& message : messages) {
    const std::string content = before + std::string(chat.trimmed ? trimmed(message.content) : message.content);
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

}  // namespace kintsugi::text
