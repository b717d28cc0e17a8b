// Which documents are for validation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kintsugi/data/corpus.h"
#include "kintsugi/data/corpus_pass.h"

namespace kintsugi::data {

// A document is for validation if the hash of (seed, its number) is below a threshold. If there is only one document
// it is split by position: the reader then takes it as document 0 up to byte `position` and document 1 from there on.
struct Split {
  uint64_t seed = 0;
  uint64_t threshold = 0;
  std::optional<uint64_t> position;
  bool single_document = false;

  bool is_validation(uint64_t document) const;
};

struct SplitOptions {
  double validation = 0.1;  // a share, at least 0 and below 1
  uint64_t seed = 0;
  std::string field;            // of JSONL
  uint64_t skip_bad_lines = 0;  // of JSONL
};

// Of up to 1,000 documents (empty ones not counted) exactly the share, rounded, is for validation, and at least one
// and not all: the threshold is one of their hashes. Of more, the threshold is the share of the range of hashes. A
// single document is split at the character int(length * (1 - validation)), as in nanoGPT; a corpus of one line of
// JSONL is treated as that text. UserError if the corpus is empty, or one document too short to be split.
Split plan_split(Corpus& corpus, const SplitOptions& options, const PassOptions& pass);

}  // namespace kintsugi::data
