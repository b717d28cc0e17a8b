// The tokenizer of a corpus: an existing one, or one trained on the text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kintsugi/data/corpus.h"
#include "kintsugi/data/corpus_pass.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::data {

struct TokenizerChoice {
  std::string name = "bytes";         // "bytes", "chars", "bpe:N", or a path
  std::string field;                  // of JSONL
  uint64_t skip_bad_lines = 0;        // of JSONL, in each corpus
  bool end_of_text = true;            // chars: add an id that ends a document
  uint64_t learn_bytes = 8ull << 30;  // bpe trains on at most about this many bytes, spread over the corpus
  size_t chunk_bytes = 1 << 20;
};

// `chars` and `bpe:N` read all corpora. Throws UserError for an unknown name, or a corpus too small for N.
std::unique_ptr<text::Tokenizer> choose_tokenizer(const std::vector<const Corpus*>& corpora,
                                                  const TokenizerChoice& choice, const PassOptions& pass);

}  // namespace kintsugi::data
