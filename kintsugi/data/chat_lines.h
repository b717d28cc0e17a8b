// Chats in JSONL files, one per line, and a chat as ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/json.h"
#include "kintsugi/text/chat_template.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::data {

struct Turn {
  text::Role role = text::Role::user;
  std::string content;

  bool operator==(const Turn&) const = default;
};

// A list of messages, whose members have these names.
std::vector<Turn> turns_of_list(const base::Json& list, std::string_view role = "role",
                                std::string_view content = "content");

// The first of these members that the object has.
std::optional<base::Json> first_of(const base::Json& object, std::initializer_list<std::string_view> names);

// A line of a file, for messages.
struct LinePlace {
  std::string name;  // of the file
  int64_t number = 0;

  [[noreturn]] void fail(std::string_view what) const;  // UserError "[data] "NAME":NUMBER: WHAT"
};

// Calls f(value, place) for each line that is not blank. Returns a fingerprint of the file and `more`. Throws UserError
// for lines that are not JSON.
std::string for_each_line(const std::filesystem::path& path, std::string_view more,
                          const std::function<void(const base::Json&, const LinePlace&)>& f);

// Renders a whole conversation; text::render_chat with errors at the place.
std::vector<text::ChatPart> rendered(const text::ChatTemplate& chat, std::span<const Turn> turns,
                                     const LinePlace& place);

// A chat as ids, and which of them are answers.
struct ChatIds {
  std::vector<int32_t> ids;
  std::vector<uint8_t> answers;  // 1 for ids of answers

  int32_t largest() const;
};

// Encodes each part of the rendered chat separately, so that training sees the same ids as inference: the tokenizer's
// begin tokens, then question and answer in turn. Answers among the first `given` turns do not count. A template
// without a stop text ends answers with the tokenizer's end of text, if it has one. Throws UserError at the place for
// turns in an invalid order, and if no id is an answer.
ChatIds chat_ids(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat, std::span<const Turn> turns,
                 size_t given, const LinePlace& place);

// The ids that an answer to the turns follows.
std::vector<int32_t> prompt_ids(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat,
                                std::span<const Turn> turns, const LinePlace& place);

// Throws UserError at the place for an id >= `vocab`.
void require_ids(int64_t largest, int64_t vocab, const LinePlace& place);

}  // namespace kintsugi::data
