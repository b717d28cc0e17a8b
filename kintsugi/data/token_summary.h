// A summary of a token file, needed before training on it: its size, and its largest id.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "kintsugi/data/token_file.h"

namespace kintsugi::data {

// Beside a pair that we wrote is NAME.json with these values, so that they need not be computed.
struct TokenSummary {
  uint64_t num_tokens = 0;
  uint64_t num_documents = 0;
  int64_t min_token = -1;  // -1: there is none. A file of ours has 0 without a scan, since its ids are not negative
  int64_t max_token = -1;
  int64_t vocab_size = 0;   // 0: not known (the file is of another program)
  std::string tokenizer;    // fingerprint of the tokenizer.json; empty: not known
  uint64_t checksum = 0;    // XXH3 of NAME.bin
  std::string fingerprint;  // of the pair; empty: not known (the file is of another program, or of an earlier version)
  bool scanned = false;     // the values come from reading the whole file
};

// From NAME.json; if there is none, by reading all tokens with `threads` threads, and a note to `progress` (null: none)
// if that takes a while. UserError if NAME.json is damaged, or describes another index.
TokenSummary summarize(const TokenFile& file, int threads, std::FILE* progress);

// The fingerprint of the pair as it is now. UserError if the summary says that another pair was written.
std::string checked_fingerprint(const TokenFile& file, const TokenSummary& summary);

// Throws UserError if the file holds an id that a vocabulary of this size does not have.
void require_vocabulary(const TokenFile& file, const TokenSummary& summary, int64_t vocab_size);

// The checksum of NAME.bin as it is now: differs from the summary's if a bit has flipped.
uint64_t checksum_of(const TokenFile& file);

// The fingerprint of a tokenizer: of the content of its tokenizer.json.
std::string tokenizer_fingerprint(std::string_view json);

std::string summary_to_json(const TokenSummary& summary, uint64_t index_checksum);

}  // namespace kintsugi::data
