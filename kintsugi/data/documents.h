// The documents, or parts of documents, in a chunk of a corpus.
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

// Parses the lines of JSONL in one pass over a corpus and collects statistics. Thread-safe.
class Lines {
 public:
  // `field` contains the text of a line. Skips up to `most_bad` malformed lines.
  explicit Lines(std::string field, uint64_t most_bad = 0) : field_(std::move(field)), most_bad_(most_bad) {}

  const std::string& field() const { return field_; }
  // Returns the text of a line, or nothing if the line is skipped. Throws UserError, with file and line, if a line is
  // not a JSON object or lacks a text in the field, and `most_bad` such lines came before.
  std::optional<std::string> text_of(std::string_view line, const std::string& path, uint64_t number);

  uint64_t bad() const { return bad_; }
  const std::string& a_bad_line() const {
    return a_bad_line_;
  }  // the problem of the first bad line, by file name and line
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

// Calls f for each in order; skips blank lines. Throws UserError as Lines::text_of does.
void for_each_part(const Corpus& corpus, const Chunk& chunk, Lines& lines,
                   const std::function<void(const TextPart&)>& f);

}  // namespace kintsugi::data
