// Conversations of a JSONL file as ids, and which of these the model says: one conversation on each line, as
//   {"messages": [{"role": "system" | "user" | "assistant", "content": "..."}, ...]}
//   {"conversations": [{"from": "system" | "human" | "gpt", "value": "..."}, ...]}
//   {"instruction": "...", "input": "...", "output": "..."}
// where "prompt" or "question" may stand for "instruction", "completion", "response" or "answer" for "output", and
// "input" may be absent. Other members are ignored.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/text/chat_template.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::data {

bool is_conversations(const std::filesystem::path& path);  // by its name: "chats.jsonl"

class Conversations {
 public:
  // Each text that the template gives is encoded by itself, so that ids are those that the model sees when it is asked:
  // what the tokenizer says that texts begin with, then question and answer in turn. UserError that names file and line
  // for damaged lines, turns in an impossible order, a conversation without an answer, and ids from `vocab` on (0: not
  // checked).
  Conversations(const std::filesystem::path& path, const text::Tokenizer& tokenizer, const text::ChatTemplate& chat,
                int64_t vocab = 0);

  const std::filesystem::path& path() const { return path_; }
  const std::string& fingerprint() const { return fingerprint_; }  // of the file and the template's name
  size_t size() const { return begins_.size() - 1; }
  int64_t line(size_t i) const { return lines_[i]; }  // from 1
  std::span<const int32_t> ids(size_t i) const { return of(ids_, i); }
  std::span<const uint8_t> answers(size_t i) const { return of(answers_, i); }  // 1 for an id that the model says
  int64_t largest_id() const { return largest_; }

 private:
  template <typename T>
  std::span<const T> of(const std::vector<T>& all, size_t i) const {
    return std::span(all).subspan(begins_[i], begins_[i + 1] - begins_[i]);
  }

  std::filesystem::path path_;
  std::string fingerprint_;
  std::vector<int32_t> ids_;
  std::vector<uint8_t> answers_;
  std::vector<size_t> begins_ = {0};
  std::vector<int64_t> lines_;
  int64_t largest_ = 0;
};

}  // namespace kintsugi::data
