// A summary of a token file, required before training on it: its size and its largest id.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "kintsugi/data/token_file.h"

namespace kintsugi::data {

// NAME.json, next to a pair written by kintsugi, stores these values to avoid recomputing them.
struct TokenSummary {
  uint64_t num_tokens = 0;
  uint64_t num_documents = 0;
  int64_t min_token = -1;  // -1: no tokens. 0 without a scan for our files, whose ids are nonnegative
  int64_t max_token = -1;
  int64_t vocab_size = 0;   // 0: unknown (written by another program)
  std::string tokenizer;    // fingerprint of tokenizer.json; empty: unknown
  uint64_t checksum = 0;    // XXH3 of NAME.bin
  std::string fingerprint;  // of the pair; empty: unknown (written by another program or an earlier version)
  bool scanned = false;     // computed by reading the whole file
};

// Reads NAME.json; otherwise scans all tokens with `threads` threads, with a note to `progress` (null: none) if that
// takes a while. Throws UserError if NAME.json is corrupt or describes another index.
TokenSummary summarize(const TokenFile& file, int threads, std::FILE* progress);

// The current fingerprint of the pair. Throws UserError if it differs from that in the summary.
std::string checked_fingerprint(const TokenFile& file, const TokenSummary& summary);

// Throws UserError if the file contains an id outside a vocabulary of this size.
void require_vocabulary(const TokenFile& file, const TokenSummary& summary, int64_t vocab_size);

// The current checksum of NAME.bin: differs from the summary's if a bit has flipped.
uint64_t checksum_of(const TokenFile& file);

// The fingerprint of a tokenizer: of the content of tokenizer.json.
std::string tokenizer_fingerprint(std::string_view json);

std::string summary_to_json(const TokenSummary& summary, uint64_t index_checksum);

}  // namespace kintsugi::data
