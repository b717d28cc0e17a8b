// Reads a corpus sequentially in chunks of bounded size.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/data/corpus.h"
#include "kintsugi/data/find_safe_cut.h"

namespace kintsugi::data {

// Part of one file within a chunk: part of a document, or whole lines of JSONL.
struct Piece {
  size_t begin = 0;  // in the chunk's text
  size_t end = 0;
  size_t file = 0;            // index in the corpus
  uint64_t offset = 0;        // of `begin` in the file
  uint64_t document = 0;      // index in the corpus; for JSONL, of the first line
  uint64_t line = 1;          // JSONL: number of the first line in its file
  bool ends_document = true;  // the next piece belongs to another document
  bool clipped = false;       // ...but only because the document was split here
};

struct Chunk {
  std::string text;
  std::vector<Piece> pieces;
};

struct ReaderOptions {
  size_t chunk_bytes = 1 << 20;  // approximate; a chunk without a safe cut is larger
  CutRule rule = CutRule::kWord;
  const text::Tokenizer* tokenizer = nullptr;       // for kWord: takes the parts; null: count GPT-2 words
  std::optional<uint64_t> split_at = std::nullopt;  // byte of the only file at which a second document begins
};

// Not thread-safe. A plain file is one document, and so is a line of JSONL.
class CorpusReader {
 public:
  CorpusReader(const Corpus& corpus, ReaderOptions options);

  // Reads the next chunk; returns false at the end. Throws UserError if a file cannot be read.
  bool next(Chunk& chunk);

 private:
  void read_plain(Chunk& chunk);
  void read_lines(Chunk& chunk);
  bool fill(Chunk& chunk, size_t begin, size_t want);
  void close_file();

  const Corpus& corpus_;
  ReaderOptions options_;
  std::optional<text::WhiteCuts> cuts_;  // of the tokenizer, created at the first cut
  size_t file_ = 0;                      // the open file, or the next one
  std::unique_ptr<InputFile> input_;
  std::string rest_;     // of the open file: read, but past the last cut
  uint64_t offset_ = 0;  // of the open file: beginning of the next piece
  uint64_t line_ = 1;
  uint64_t document_ = 0;
};

}  // namespace kintsugi::data
