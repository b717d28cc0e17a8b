// The documents, or parts of them, in a chunk of a corpus.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kintsugi/data/corpus_reader.h"
#include "kintsugi/data/json_line.h"

namespace kintsugi::data {

struct TextPart {
  std::string_view text;
  uint64_t document = 0;
  bool ends_document = true;
  bool clipped = false;
  std::string where;  // for messages: "book.txt", "book.txt from byte 1048576 on", "pages.jsonl:12"
};

// How the lines of JSONL are read in one pass over a corpus, and what was found there. Safe from several threads.
class Lines {
 public:
  // `field` holds the text of a line. Up to `most_bad` lines that cannot be read are passed over.
  explicit Lines(std::string field, uint64_t most_bad = 0) : field_(std::move(field)), most_bad_(most_bad) {}

  const std::string& field() const { return field_; }
  // The text of a line; nothing of one that is passed over. UserError, with file and line, if a line is no JSON object
  // or has no such field with a text, and there were `most_bad` of them before.
  std::optional<std::string> text_of(std::string_view line, const std::string& path, uint64_t number);

  uint64_t bad() const { return bad_; }
  const std::string& a_bad_line() const { return a_bad_line_; }  // what is wrong with the first by name and line
  const JsonRepairs& repairs() const { return repairs_; }

 private:
  std::string field_;
  uint64_t most_bad_;
  std::mutex mutex_;  // of what follows
  uint64_t bad_ = 0;
  std::pair<std::string, uint64_t> first_bad_;  // file and line
  std::string a_bad_line_;
  JsonRepairs repairs_;
};

// Calls f for each, in order; blank lines are skipped. UserError as Lines::text_of.
void for_each_part(const Corpus& corpus, const Chunk& chunk, Lines& lines,
                   const std::function<void(const TextPart&)>& f);

}  // namespace kintsugi::data
