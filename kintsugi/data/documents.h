// The documents, or parts of them, in a chunk of a corpus.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "kintsugi/data/corpus_reader.h"

namespace kintsugi::data {

struct TextPart {
  std::string_view text;
  uint64_t document = 0;
  bool ends_document = true;
  bool clipped = false;
  std::string where;  // for messages: "book.txt", "book.txt from byte 1048576 on", "pages.jsonl:12"
};

// Calls f for each, in order; a line of JSONL is parsed and its `field` taken, blank lines are skipped. UserError,
// with file and line, if a line is no JSON object or has no such field with a text.
void for_each_part(const Corpus& corpus, const Chunk& chunk, const std::string& field,
                   const std::function<void(const TextPart&)>& f);

}  // namespace kintsugi::data
