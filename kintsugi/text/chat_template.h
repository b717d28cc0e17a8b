// Chat formats: how chat-tuned models mark who is speaking. The formats of the common families, as rows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/text/tokenizer.h"

namespace kintsugi::text {

enum class Role { system, user, assistant };

struct Message {
  Role role = Role::user;
  std::string_view content;
};

// In a format, {} is the content. Excludes the tokenizer's token before the first turn (`<s>`).
struct ChatTemplate {
  std::string_view name;    // "llama3"
  std::string_view system;  // the turn; if `joined`, the prefix of the content of the user's next turn
  std::string_view user;
  std::string_view assistant;
  std::string_view answer;          // after the last turn: the answer follows
  std::string_view stop;            // ends an answer
  bool joined = false;              // the system has no turn of its own
  bool trimmed = false;             // strip white space around content
  std::string_view last = {};       // before the content of the answer that ends a conversation
  std::string_view begin = {};      // before the first turn
  std::string_view last_stop = {};  // in place of `stop` after the answer that ends a conversation
};

std::span<const ChatTemplate> chat_templates();
// Throws UserError "[chat] ..." for an unknown name.
const ChatTemplate& chat_template(std::string_view name);

// The text that the model's answer follows. Throws UserError for turns in another order than user, assistant, user,
// ..., after at most one of the system.
std::string format_chat(const ChatTemplate& chat, std::span<const Message> messages);

// Part of a conversation's text. An answer is what the model says: from where it begins to speak to the end of its stop
// text.
struct ChatPart {
  std::string text;
  bool answer = false;
};

// Renders a whole conversation, whose last turn is the assistant's. Throws UserError as format_chat does, and if there
// is no answer.
std::vector<ChatPart> render_chat(const ChatTemplate& chat, std::span<const Message> messages);

// The text after the stop text of an answer.
std::string_view after_answer(const ChatTemplate& chat);

// The token of the template's stop text, if the tokenizer has one; without a stop text, its end of text.
std::optional<int32_t> stop_token(const Tokenizer& tokenizer, const ChatTemplate& chat);

// Appends the ids of a chat's text. <s> and </s> in it are tokens even where the encoder never creates them from text.
void encode_chat(const Tokenizer& tokenizer, std::string_view text, bool first, std::vector<int32_t>& ids);

// Recognizes a Jinja template of transformers by its content; null if unknown.
const ChatTemplate* recognize_chat(std::string_view jinja);

// Finds the template of a Hugging Face folder, in chat_template.jinja or tokenizer_config.json; null if it has none.
// Throws UserError, listing the known templates, for an unrecognized one.
const ChatTemplate* find_chat_template(const std::filesystem::path& folder);

}  // namespace kintsugi::text
