// Converts text to token files.
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
  std::string field;                // of JSONL; empty: plain text
  uint64_t skip_bad_lines = 0;      // malformed lines of JSONL to skip per corpus
  std::string document_end = "";    // the token that ends a document; empty: the tokenizer's
  std::string document_begin = "";  // the token that begins a document; empty: none
  std::string tokenizer = "bytes";  // bytes, chars, bpe:N, or a path
  std::filesystem::path output;
  std::optional<double> validation;  // fraction of the documents; default 0.1, or none if there is a validation text
  std::string validation_text;       // a separate file, folder or pattern; excluded from the training text
  uint64_t seed = 1;                 // for choosing validation documents
  int threads = 0;                   // 0: all cores available to the process
  bool force = false;                // replace existing token files
  size_t chunk_bytes = 1 << 20;
  uint64_t learn_bytes = 8ull << 30;  // bytes of text that bpe:N trains on, at most
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

// Writes train.bin/.idx/.json, validation.* and tokenizer.json to `output`, with identical bytes for any number of
// threads. A document ends with the tokenizer's end-of-text id, if it has one; a document split by position ends only
// in its second part. Files get their final names only after everything is written and synced. Throws UserError on any
// failure.
PrepareResult prepare(const PrepareOptions& options);

}  // namespace kintsugi::data
