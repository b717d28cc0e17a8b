// index.json of a checkpoint: the tensors it holds, and which file holds each piece. Plain data. The grammar is in
// index.cpp and in docs/checkpoint-format.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/checkpoint/box.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::checkpoint {

inline constexpr int64_t kFormatVersion = 1;
inline constexpr std::string_view kIndexFile = "index.json";
inline constexpr std::string_view kIndexChecksumFile = "index.xxh3";
inline constexpr std::string_view kConfigFile = "config.toml";
inline constexpr std::string_view kTokenizerFile = "tokenizer.json";

enum class Kind : uint8_t { weight, optimizer, statistic };

std::string_view name_of(Kind kind);

// Where the elements of one part of a tensor are stored: under `key` in `file`.
struct StoredPiece {
  Part part;
  std::string file;  // name within the checkpoint's folder
  std::string key;   // name of the tensor in that file
  uint64_t checksum = 0;
};

struct StoredTensor {
  tensor::Type type;  // of the whole tensor
  Kind kind = Kind::weight;
  std::vector<StoredPiece> pieces;
};

struct StoredFile {
  uint64_t bytes = 0;
  uint64_t checksum = 0;  // of the whole file; for a safetensors file, of the bytes before the data
};

struct Index {
  int64_t step = 0;
  std::string state = "{}";  // the caller's JSON object
  std::map<std::string, StoredFile, std::less<>> files;
  std::map<std::string, StoredTensor, std::less<>> tensors;
};

std::string rank_file(int rank);  // "rank_00000.safetensors"
std::string print_index(const Index& index);

// Throws UserError "[checkpoint] "NAME": ..." if the text is not a valid index, or its pieces do not fit their tensors.
Index parse_index(std::string_view file_name, std::string_view text);

// Throws UserError "[checkpoint] "NAME": ..." unless the pieces of each tensor cover each of its elements exactly once:
// their boxes are equal or disjoint, and the ranges of equal boxes are adjacent.
void check_coverage(std::string_view file_name, const Index& index);

// Adds the pieces and files of `part` to `whole`. Throws UserError if they disagree about a tensor.
void merge(std::string_view file_name, Index& whole, Index part);

}  // namespace kintsugi::checkpoint
