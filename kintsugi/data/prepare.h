// Text to token files.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace kintsugi::data {

struct PrepareOptions {
  std::vector<std::string> inputs;  // files, folders, patterns
  std::string field;                // of JSONL; empty: the inputs are plain text
  uint64_t skip_bad_lines = 0;      // of JSONL, that are passed over in each corpus
  std::string document_end = "";    // the token that ends a document; empty: the tokenizer's
  std::string document_begin = "";  // the token that begins one; empty: none
  std::string tokenizer = "bytes";  // bytes, chars, bpe:N, or the path of one
  std::filesystem::path output;
  std::optional<double> validation;  // share of the documents; 0.1, or none where there is a validation text
  std::string validation_text;       // a file, folder or pattern of its own; left out of the training text
  uint64_t seed = 1;                 // of the choice of validation documents
  int threads = 0;                   // 0: all cores that the process may use
  bool force = false;                // replace existing token files
  size_t chunk_bytes = 1 << 20;
  uint64_t learn_bytes = 8ull << 30;  // of text, from which bpe:N learns at most
  std::FILE* progress = nullptr;
  const std::atomic<bool>* stop = nullptr;
};

struct PrepareResult {
  struct Part {
    uint64_t tokens = 0;
    uint64_t documents = 0;
  };
  Part train;
  Part validation;
  bool has_validation = false;
  int64_t vocab_size = 0;
  std::string tokenizer_kind;
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t empty_documents = 0;
  bool split_by_position = false;
  std::vector<std::string> notes;  // lines on what was skipped
};

// Writes train.bin/.idx/.json, validation.* and tokenizer.json into `output`, the same bytes for any number of
// threads. A document ends with the tokenizer's end-of-text id, if it has one; a document that is split by position
// ends only in its second part. No file gets its final name before everything is written and synced. UserError if
// anything fails.
PrepareResult prepare(const PrepareOptions& options);

}  // namespace kintsugi::data
