// A token file: the ids of many documents, one after the other, in a pair of files that Megatron reads and writes
// (its IndexedDataset), all little-endian:
//
//   NAME.bin = ids of all sequences, nothing between them
//   NAME.idx = "MMIDIDX\0\0"  version: u64 = 1  type: u8  sequences: u64  boundaries: u64
//              lengths: i32[sequences], in tokens
//              pointers: i64[sequences], in bytes into NAME.bin
//              boundaries: i64[boundaries], the first sequence of each document, then the number of sequences
//              [modes: i8[sequences], which only multimodal files have; ignored here]
//
// A document is one sequence, or several where it is longer than a length can say.
//
// A NAME.bin without an index, named with its suffix, is one of other programs, and one document:
//   nanoGPT  ids: u16
//   llm.c    1,024 bytes: magic: i32 = 20240520, version: i32 = 1, tokens: i32, zeros; then ids: u16
//            or magic = 20240801, version = 7; then ids: u32
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "kintsugi/base/read_only_file.h"
#include "kintsugi/data/token_type.h"

namespace kintsugi::data {

// "a/train", "a/train.bin" and "a/train.idx" name the same pair; returns "a/train".
std::filesystem::path token_prefix(const std::filesystem::path& path);
// prefix + suffix; the prefix may itself contain dots.
std::filesystem::path with_suffix(const std::filesystem::path& prefix, std::string_view suffix);

// A pair that is read on demand. Opening reads the index once (time linear in the number of sequences, little memory)
// and throws UserError if it is corrupt. Const use is thread-safe and allocates nothing; throws UserError, naming the
// file, if it cannot be read or was truncated since it was opened.
class TokenFile {
 public:
  explicit TokenFile(const std::filesystem::path& path);

  const std::filesystem::path& prefix() const { return prefix_; }
  TokenType type() const { return type_; }
  uint64_t num_tokens() const { return num_tokens_; }
  uint64_t num_sequences() const { return num_sequences_; }
  uint64_t num_documents() const { return num_documents_; }
  uint64_t num_bytes() const { return bin_.size(); }
  const base::ReadOnlyFile& bin() const { return bin_; }
  const base::ReadOnlyFile& idx() const { return idx_; }  // empty for a bare file
  bool bare() const { return bare_; }

  // The first token of a document; that of document num_documents() is num_tokens().
  uint64_t document_begin(uint64_t document) const;
  // The same for each document from `first` on, with few reads.
  void document_begins(uint64_t first, std::span<uint64_t> out) const;
  // The document containing a token (< num_tokens()), by binary search, first in memory.
  uint64_t document_of(uint64_t token) const;

  // Copies tokens [first, first + out.size()). Clamps 64-bit ids that do not fit int32 to the maximum.
  void read(uint64_t first, std::span<int32_t> out) const;
  // The same in one read with the next token, which must exist and is returned.
  int32_t read_with_next(uint64_t first, std::span<int32_t> out) const;

 private:
  void open_bare();
  void read_tokens(uint64_t first, std::span<int32_t> out, int32_t* next) const;
  void check_header();
  void check_sequences() const;
  void check_documents();
  void note_begins();

  std::filesystem::path prefix_;
  base::ReadOnlyFile idx_;
  base::ReadOnlyFile bin_;
  TokenType type_ = TokenType::kU16;
  uint64_t num_tokens_ = 0;
  uint64_t num_sequences_ = 0;
  uint64_t num_documents_ = 0;
  bool bare_ = false;
  uint64_t header_ = 0;   // bytes before the ids
  uint64_t lengths_ = 0;  // byte offsets of the three tables in the index
  uint64_t pointers_ = 0;
  uint64_t boundaries_ = 0;
  bool one_sequence_each_ = true;  // document d is sequence d
  uint64_t noted_every_ = 1;
  std::vector<uint64_t> noted_begins_;  // of every noted_every_-th document, at most 4096 in total
};

}  // namespace kintsugi::data
