// A corpus pipeline as specified by its file: sources of documents, and which documents are kept.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::corpus {

enum class Format : uint8_t {
  text,      // each file is a document
  jsonl,     // each line is a document, the text is in `field`
  inverted,  // each line is a document, `field` maps words to positions (Microsoft Academic Graph, OpenAlex)
  tokens,    // token files of Megatron, nanoGPT or llm.c, decoded by `tokenizer`
};
std::string_view name_of(Format format);

// [source.NAME]; the name is the domain of its documents.
struct Source {
  std::string domain = {};
  Format format = Format::jsonl;
  std::vector<std::string> paths = {};  // files, folders, patterns
  std::string field = "text";
  std::string tokenizer = {};  // of format tokens
};

// [filter]
struct Filter {
  std::vector<std::string> languages = {};  // codes such as "en"; empty: all
  int64_t min_bytes = 1;
  int64_t max_bytes = int64_t{1} << 40;
  bool gopher = false;         // the quality rules of filters.h
  int64_t skip_bad_lines = 0;  // malformed lines of JSONL to skip, per source
};

// [deduplicate]
struct Deduplicate {
  bool exact = true;
  double near = 0;       // Jaccard similarity at which two documents count as near duplicates; 0: off
  int64_t hashes = 112;  // of a MinHash signature
  int64_t words = 5;     // of a shingle
};

// [decontaminate]
struct Decontaminate {
  std::vector<std::string> paths = {};  // evaluation sets: JSONL, whose texts are all strings of a line, or plain text
  int64_t words = 13;                   // a document that shares this many consecutive words is dropped
};

struct Spec {
  std::vector<Source> sources;  // in file order
  Filter filter;
  Deduplicate deduplicate;
  Decontaminate decontaminate;
};

// `name` is the file's, for messages. Throws UserError "[prepare] NAME:LINE: ..." for unknown sections and keys, values
// of another type or out of range, and a file without sources.
Spec read_spec(std::string_view text, std::string_view name);

}  // namespace kintsugi::corpus
