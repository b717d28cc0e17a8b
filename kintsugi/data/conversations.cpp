#include "kintsugi/data/conversations.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"

namespace kintsugi::data {
namespace {

using base::Json;
using text::Role;

}  // namespace

std::vector<Turn> conversation_turns(const Json& line) {
  if (const auto messages = line.find("messages")) return turns_of_list(*messages);
  if (const auto messages = line.find("conversations")) return turns_of_list(*messages, "from", "value");
  const auto asked = first_of(line, {"instruction", "prompt", "question"}),
             answered = first_of(line, {"output", "completion", "response", "answer"});
  if (!asked || !answered) line.fail("a conversation has \"messages\", or \"instruction\" and \"output\"");
  std::vector<Turn> turns;
  if (const auto system = line.find("system"); system && system->is_text() && !system->text().empty())
    turns.push_back({Role::system, std::string(system->text())});
  std::string question(asked->text());
  if (const auto input = line.find("input"); input && !input->is_null() && !input->text().empty())
    question += "\n" + std::string(input->text());
  turns.push_back({Role::user, std::move(question)});
  turns.push_back({Role::assistant, std::string(answered->text())});
  return turns;
}

bool is_conversations(const std::filesystem::path& path) {
  return path.extension() == ".jsonl";
}

Conversations::Conversations(const std::filesystem::path& path, const text::Tokenizer& tokenizer,
                             const text::ChatTemplate& chat, int64_t vocab)
    : path_(path) {
  fingerprint_ = for_each_line(path, chat.name, [&](const Json& line, const LinePlace& place) {
    const ChatIds made = chat_ids(tokenizer, chat, conversation_turns(line), 0, place);
    largest_ = std::max<int64_t>(largest_, made.largest());
    require_ids(made.largest(), vocab, place);
    ids_.insert(ids_.end(), made.ids.begin(), made.ids.end());
    answers_.insert(answers_.end(), made.answers.begin(), made.answers.end());
    begins_.push_back(ids_.size());
    lines_.push_back(place.number);
  });
  if (size() == 0) throw base::UserError("data", "{} holds no conversations", base::in_quotes(path.string()));
}

}  // namespace kintsugi::data
