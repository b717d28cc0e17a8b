// Chooses the validation documents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kintsugi/data/corpus.h"
#include "kintsugi/data/corpus_pass.h"

namespace kintsugi::data {

// A document is for validation if the hash of (seed, its index) is below a threshold. A single document is split by
// position: the reader then treats it as document 0 up to byte `position` and document 1 after that.
struct Split {
  uint64_t seed = 0;
  uint64_t threshold = 0;
  std::optional<uint64_t> position;
  bool single_document = false;

  bool is_validation(uint64_t document) const;
};

struct SplitOptions {
  double validation = 0.1;  // fraction in [0, 1)
  uint64_t seed = 0;
  std::string field;            // of JSONL
  uint64_t skip_bad_lines = 0;  // of JSONL
};

// Of up to 1,000 documents (not counting empty ones), exactly the rounded fraction is for validation, but at least one
// and not all: the threshold is one of their hashes. Of more, the threshold is that fraction of the hash range. A
// single document is split at the character int(length * (1 - validation)), as in nanoGPT; a corpus of one line of
// JSONL is treated as that text. Throws UserError if the corpus is empty, or consists of one document that is too short
// to split.
Split plan_split(Corpus& corpus, const SplitOptions& options, const PassOptions& pass);

}  // namespace kintsugi::data
