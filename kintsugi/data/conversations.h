// Conversations of a JSONL file as ids, and which of these are answers. One conversation per line:
//   {"messages": [{"role": "system" | "user" | "assistant", "content": "..."}, ...]}
//   {"conversations": [{"from": "system" | "human" | "gpt", "value": "..."}, ...]}
//   {"instruction": "...", "input": "...", "output": "..."}
// where "prompt" or "question" may replace "instruction"; "completion", "response" or "answer" may replace "output";
// and "input" is optional. Ignores other members.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/data/chat_lines.h"
#include "kintsugi/text/chat_template.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::data {

bool is_conversations(const std::filesystem::path& path);  // by name: "chats.jsonl"

// The turns of a line. Throws UserError for a malformed one.
std::vector<Turn> conversation_turns(const base::Json& line);

class Conversations {
 public:
  // Encodes each text of the template separately, so that training sees the same ids as inference: the tokenizer's
  // begin tokens, then question and answer in turn. Throws UserError, naming file and line, for malformed lines, turns
  // in an invalid order, a conversation without an answer, and ids >= `vocab` (0: not checked).
  Conversations(const std::filesystem::path& path, const text::Tokenizer& tokenizer, const text::ChatTemplate& chat,
                int64_t vocab = 0);

  const std::filesystem::path& path() const { return path_; }
  const std::string& fingerprint() const { return fingerprint_; }  // of the file and the template's name
  size_t size() const { return begins_.size() - 1; }
  int64_t line(size_t i) const { return lines_[i]; }  // from 1
  std::span<const int32_t> ids(size_t i) const { return of(ids_, i); }
  std::span<const uint8_t> answers(size_t i) const { return of(answers_, i); }  // 1 for ids of answers
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
