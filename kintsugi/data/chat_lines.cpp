#include "kintsugi/data/chat_lines.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/data/json_line.h"

namespace kintsugi::data {
namespace {

using base::Json;
using text::Role;

constexpr base::MostBytes kMostOfChats = {int64_t{16} << 30, "a file of conversations"};

Role role_of(const Json& name) {
  constexpr std::pair<std::string_view, Role> kRoles[] = {{"system", Role::system}, {"user", Role::user},
                                                          {"human", Role::user},    {"assistant", Role::assistant},
                                                          {"gpt", Role::assistant}, {"model", Role::assistant}};
  for (const auto& [text, role] : kRoles)
    if (name.text() == text) return role;
  name.refuse("\"system\", \"user\" or \"assistant\"");
}

std::vector<text::Message> messages_of(std::span<const Turn> turns) {
  std::vector<text::Message> messages;
  for (const Turn& turn : turns) messages.push_back({turn.role, turn.content});
  return messages;
}

// Calls f(), with the place in errors of text::.
template <typename F>
auto at_place(const LinePlace& place, F&& f) {
  try {
    return f();
  } catch (const base::UserError& error) {
    const std::string_view what = error.what();
    const size_t at = what.find("] ");
    place.fail(at == what.npos ? what : what.substr(at + 2));
  }
}

}  // namespace

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

void LinePlace::fail(std::string_view what) const {
  throw base::UserError("data", "{}:{}: {}", base::in_quotes(name), number, what);
}

std::string for_each_line(const std::filesystem::path& path, std::string_view more,
                          const std::function<void(const Json&, const LinePlace&)>& f) {
  const std::string file = base::read_file(path, kMostOfChats);
  LinePlace place = {.name = path.string()};
  JsonRepairs repairs;
  for (size_t at = 0; at < file.size();) {
    const size_t end = std::min(file.find('\n', at), file.size());
    const std::string_view line(file.data() + at, end - at);
    at = end + 1;
    ++place.number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    f(parse_json_line("data", place.name, line, place.number, repairs), place);
  }
  return fmt::format("{:016x}", XXH3_64bits_withSeed(file.data(), file.size(), XXH3_64bits(more.data(), more.size())));
}

std::vector<text::ChatPart> rendered(const text::ChatTemplate& chat, std::span<const Turn> turns,
                                     const LinePlace& place) {
  return at_place(place, [&] { return text::render_chat(chat, messages_of(turns)); });
}

int32_t ChatIds::largest() const {
  return ids.empty() ? 0 : *std::ranges::max_element(ids);
}

ChatIds chat_ids(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat, std::span<const Turn> turns,
                 size_t given, const LinePlace& place) {
  const std::vector<text::ChatPart> parts = rendered(chat, turns, place);
  auto left = static_cast<size_t>(std::ranges::count(turns.first(given), Role::assistant, &Turn::role));
  ChatIds made = {.ids = tokenizer.special_tokens().before, .answers = {}};
  made.answers.resize(made.ids.size(), 0);
  const int32_t end = chat.stop.empty() ? tokenizer.end_of_text().value_or(-1) : -1;
  bool first = true;
  for (const text::ChatPart& part : parts) {
    const bool counts = part.answer && left == 0;
    if (part.answer && left > 0) --left;
    if (!part.text.empty()) {
      text::encode_chat(tokenizer, part.text, first, made.ids);
      first = false;
    }
    if (part.answer && end >= 0) made.ids.push_back(end);
    made.answers.resize(made.ids.size(), counts ? 1 : 0);
  }
  if (std::ranges::count(made.answers, 1) == 0) place.fail("no token of the conversation is an answer");
  return made;
}

std::vector<int32_t> prompt_ids(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat,
                                std::span<const Turn> turns, const LinePlace& place) {
  const std::string text = at_place(place, [&] { return text::format_chat(chat, messages_of(turns)); });
  std::vector<int32_t> ids = tokenizer.special_tokens().before;
  text::encode_chat(tokenizer, text, true, ids);
  if (ids.empty()) place.fail("the prompt has no token");
  return ids;
}

void require_ids(int64_t largest, int64_t vocab, const LinePlace& place) {
  if (vocab > 0 && largest >= vocab)
    place.fail(
        fmt::format("a token has the id {}, but the model's table has {} rows: the tokenizer is that of another model",
                    largest, vocab));
}

}  // namespace kintsugi::data
