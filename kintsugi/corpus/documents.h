// Documents of the sources of a pipeline, read in batches of bounded size.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kintsugi/base/json.h"
#include "kintsugi/corpus/spec.h"
#include "kintsugi/data/corpus.h"
#include "kintsugi/data/corpus_reader.h"
#include "kintsugi/data/token_file.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::corpus {

// A file of a source.
struct Input {
  size_t source = 0;
  std::string name;  // for messages
  uint64_t bytes = 0;
  std::string stamp;                                // changes if the file does
  std::shared_ptr<const data::Corpus> corpus = {};  // of this file alone; null for token files
  std::shared_ptr<const data::TokenFile> tokens = {};
};

// In the order of the spec. Throws UserError if a path matches nothing, a file cannot be read, or is named twice.
std::vector<Input> list_inputs(const Spec& spec);

struct Batch {
  size_t input = 0;
  bool last = false;  // of this input
  data::Chunk lines = {};
  std::string text = {};          // of a text file
  std::vector<int32_t> ids = {};  // of a token file
  std::vector<size_t> ends = {};  // of its documents in `ids`
  uint64_t first_document = 0;    // of a token file
  uint64_t bytes = 0;
};

// Not thread-safe.
class BatchReader {
 public:
  // Reads the inputs named by their indices, in this order.
  BatchReader(const Spec& spec, const std::vector<Input>& inputs, std::vector<size_t> which);

  // Returns false at the end. Each input has at least one batch. Throws UserError if a file cannot be read, or a text
  // file has more than 256 MiB.
  bool next(Batch& batch);

 private:
  bool fill(Batch& batch);

  const Spec& spec_;
  const std::vector<Input>& inputs_;
  std::vector<size_t> which_;
  size_t at_ = 0;  // in which_
  std::unique_ptr<data::CorpusReader> reader_;
  uint64_t document_ = 0;
};

struct Document {
  std::string text;     // UTF-8: invalid bytes are replaced by U+FFFD
  uint64_t number = 0;  // line of its file, or index
};

struct Documents {
  std::vector<Document> list;
  uint64_t bad_lines = 0;
  std::string a_bad_line;  // the problem of the first one
};

// Thread-safe.
class Parser {
 public:
  // Loads the tokenizers of the spec.
  explicit Parser(const Spec& spec);

  Documents parse(const std::vector<Input>& inputs, const Batch& batch) const;

 private:
  const Spec& spec_;
  std::vector<std::shared_ptr<const text::Tokenizer>> tokenizers_;  // by source; null: none
};

// The text of a map from words to positions, in order, separated by spaces. Exposed for tests.
std::string text_of_inverted(const base::Json& value);

}  // namespace kintsugi::corpus
