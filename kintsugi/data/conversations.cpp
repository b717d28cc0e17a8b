#include "kintsugi/data/conversations.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/data/json_line.h"

namespace kintsugi::data {
namespace {

using base::Json;
using text::Role;

constexpr base::MostBytes kMostOfConversations = {int64_t{16} << 30, "a file of conversations"};

struct Turn {
  Role role = Role::user;
  std::string content;
};

Role role_of(const Json& name) {
  constexpr std::pair<std::string_view, Role> kRoles[] = {{"system", Role::system}, {"user", Role::user},
                                                          {"human", Role::user},    {"assistant", Role::assistant},
                                                          {"gpt", Role::assistant}, {"model", Role::assistant}};
  for (const auto& [text, role] : kRoles)
    if (name.text() == text) return role;
  name.refuse("\"system\", \"user\" or \"assistant\"");
}

std::vector<Turn> turns_of_list(const Json& list, std::string_view role, std::string_view content) {
  std::vector<Turn> turns;
  for (const Json& message : list.list())
    turns.push_back({role_of(message.at(role)), std::string(message.at(content).text())});
  return turns;
}

std::optional<Json> first_of(const Json& object, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const auto member = object.find(name)) return member;
  return std::nullopt;
}

std::vector<Turn> turns_of(const Json& line) {
  if (const auto messages = line.find("messages")) return turns_of_list(*messages, "role", "content");
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

}  // namespace

bool is_conversations(const std::filesystem::path& path) {
  return path.extension() == ".jsonl";
}

Conversations::Conversations(const std::filesystem::path& path, const text::Tokenizer& tokenizer,
                             const text::ChatTemplate& chat, int64_t vocab)
    : path_(path) {
  const std::string file = base::read_file(path, kMostOfConversations), name = path.string();
  const std::vector<int32_t> before = tokenizer.special_tokens().before;
  int64_t number = 0;
  JsonRepairs repairs;
  for (size_t at = 0; at < file.size();) {
    const size_t end = std::min(file.find('\n', at), file.size());
    const std::string_view line(file.data() + at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const auto fail = [&](std::string_view what) {
      throw base::UserError("data", "{}:{}: {}", base::in_quotes(name), number, what);
    };
    const std::vector<Turn> turns = turns_of(parse_json_line("data", name, line, number, repairs));
    std::vector<text::Message> messages;
    for (const Turn& turn : turns) messages.push_back({turn.role, turn.content});
    std::vector<text::ChatPart> parts;
    try {
      parts = text::render_chat(chat, messages);
    } catch (const base::UserError& error) {
      const std::string_view what = error.what();
      const size_t place = what.find("] ");
      fail(place == what.npos ? what : what.substr(place + 2));
    }
    const size_t begin = ids_.size();
    ids_.insert(ids_.end(), before.begin(), before.end());
    answers_.resize(ids_.size(), 0);
    bool first = true;
    for (const text::ChatPart& part : parts) {
      if (part.text.empty()) continue;
      text::encode_chat(tokenizer, part.text, first, ids_);
      first = false;
      answers_.resize(ids_.size(), part.answer ? 1 : 0);
    }
    if (std::count(answers_.begin() + static_cast<std::ptrdiff_t>(begin), answers_.end(), 1) == 0)
      fail("no token of the conversation is an answer");
    const int32_t largest = *std::max_element(ids_.begin() + static_cast<std::ptrdiff_t>(begin), ids_.end());
    largest_ = std::max<int64_t>(largest_, largest);
    if (vocab > 0 && largest >= vocab)
      fail(fmt::format(
          "a token has the id {}, but the model's table has {} rows: the tokenizer is that of another model", largest,
          vocab));
    begins_.push_back(ids_.size());
    lines_.push_back(number);
  }
  if (size() == 0) throw base::UserError("data", "{} holds no conversations", base::in_quotes(name));
  fingerprint_ = fmt::format(
      "{:016x}", XXH3_64bits_withSeed(file.data(), file.size(), XXH3_64bits(chat.name.data(), chat.name.size())));
}

}  // namespace kintsugi::data
