// Prompts with the answers that are known to be right, from a JSONL file. One per line:
//   {"prompt": "..." or [messages], "answer": "..."}
// where "question", "instruction" or "messages" may replace "prompt", "solution" or "output" may replace "answer", and
// an answer may be a number. Ignores other members.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kintsugi/data/chat_lines.h"

namespace kintsugi::data {

class Prompts {
 public:
  // Throws UserError, naming file and line, for malformed lines and turns in an invalid order.
  Prompts(const std::filesystem::path& path, const text::Tokenizer& tokenizer, const text::ChatTemplate& chat);

  struct Prompt {
    std::vector<int32_t> ids;  // up to where the model's answer begins
    std::string text;          // of the last turn
    std::string answer;
    int64_t line = 0;  // from 1
  };

  const std::filesystem::path& path() const { return path_; }
  const std::string& fingerprint() const { return fingerprint_; }  // of the file and the template's name
  const std::vector<Prompt>& list() const { return list_; }
  int64_t largest_id() const { return largest_; }

 private:
  std::filesystem::path path_;
  std::string fingerprint_;
  std::vector<Prompt> list_;
  int64_t largest_ = 0;
};

}  // namespace kintsugi::data
