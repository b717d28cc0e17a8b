// Pairs of answers to the same prompt, of which one is preferred, from a JSONL file as ids. One pair per line:
//   {"prompt": "...", "chosen": "...", "rejected": "..."}
//   {"prompt": [messages], "chosen": [messages], "rejected": [messages]}, or an answer as text
//   {"chosen": [messages], "rejected": [messages]}: whole conversations; the prompt is what they have in common
// where a message has "role" and "content". Ignores other members.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kintsugi/data/chat_lines.h"

namespace kintsugi::data {

class Preferences {
 public:
  // Throws UserError, naming file and line, for malformed lines, turns in an invalid order, and a pair without an
  // answer.
  Preferences(const std::filesystem::path& path, const text::Tokenizer& tokenizer, const text::ChatTemplate& chat);

  struct Pair {
    ChatIds chosen, rejected;  // prompt and answer
    int64_t line = 0;          // from 1

    size_t positions() const { return chosen.ids.size() + rejected.ids.size() - 2; }  // predicted tokens
  };

  const std::filesystem::path& path() const { return path_; }
  const std::string& fingerprint() const { return fingerprint_; }  // of the file and the template's name
  const std::vector<Pair>& pairs() const { return pairs_; }
  int64_t largest_id() const { return largest_; }

 private:
  std::filesystem::path path_;
  std::string fingerprint_;
  std::vector<Pair> pairs_;
  int64_t largest_ = 0;
};

}  // namespace kintsugi::data
