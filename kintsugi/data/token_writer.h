// Writes a token file of any size in bounded memory.
#pragma once

#include <xxhash.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/base/file.h"
#include "kintsugi/data/token_type.h"

namespace kintsugi::data {

struct TokenWriterOptions {
  int64_t vocab_size = 0;            // exclusive bound on ids; determines the type
  std::string tokenizer;             // fingerprint of the tokenizer, for the summary
  int64_t max_sequence = INT32_MAX;  // in tokens; longer documents become several sequences
};

// Writes to NAME.bin.part and other ".part" files next to it; publish() renames them to their final names. Until then,
// and if that fails, an existing pair remains unchanged; the destructor removes the parts.
class TokenWriter {
 public:
  TokenWriter(const std::filesystem::path& prefix, TokenWriterOptions options);
  ~TokenWriter();
  TokenWriter(const TokenWriter&) = delete;
  TokenWriter& operator=(const TokenWriter&) = delete;

  void append(std::span<const int32_t> ids);
  // Ends the document appended since the last end, which may be empty.
  void end_document();

  // Ends an open document and syncs the parts to disk.
  void finish();
  // Call after finish(). Renames the index last, so that a pair with an index is complete.
  void publish();

  uint64_t num_tokens() const { return num_tokens_; }
  uint64_t num_documents() const { return num_documents_; }

 private:
  void end_sequence();
  void write_index();
  void write_summary();
  std::filesystem::path part(std::string_view suffix) const;

  std::filesystem::path prefix_;
  TokenWriterOptions options_;
  TokenType type_;
  std::optional<base::FileWriter> bin_;
  std::optional<base::FileWriter> lengths_;     // i32 per sequence; on disk, since a corpus may have 10^9 of them
  std::optional<base::FileWriter> boundaries_;  // i64 per document
  std::vector<std::byte> packed_;
  XXH3_state_t* hash_ = nullptr;
  uint64_t num_tokens_ = 0;
  uint64_t num_sequences_ = 0;
  uint64_t num_documents_ = 0;
  int64_t in_sequence_ = 0;
  uint64_t begun_ = 0;  // number of sequences when the open document began
  int64_t max_token_ = -1;
  bool published_ = false;
};

}  // namespace kintsugi::data
