// index.json of a checkpoint: the tensors that it holds, and which piece of each is in which file. Plain data. The
// grammar is at the top of index.cpp and in docs/checkpoint-format.md.
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

// Where the elements of one part of a tensor are stored: alone, under `key` in `file`.
struct StoredPiece {
  Part part;
  std::string file;  // a name in the checkpoint's folder
  std::string key;   // the tensor's name in that file
  uint64_t checksum = 0;
};

struct StoredTensor {
  tensor::Type type;  // of the whole tensor
  Kind kind = Kind::weight;
  std::vector<StoredPiece> pieces;
};

struct StoredFile {
  uint64_t bytes = 0;
  uint64_t checksum = 0;  // of the file; of a safetensors file, of what precedes the data
};

struct Index {
  int64_t step = 0;
  std::string state = "{}";  // a JSON object of the caller
  std::map<std::string, StoredFile, std::less<>> files;
  std::map<std::string, StoredTensor, std::less<>> tensors;
};

std::string rank_file(int rank);  // "rank_00000.safetensors"
std::string print_index(const Index& index);

// UserError "[checkpoint] "NAME": ..." if the text is no index, or its pieces do not fit their tensors.
Index parse_index(std::string_view file_name, std::string_view text);

// UserError "[checkpoint] "NAME": ..." unless the pieces of each tensor hold each of its elements exactly once: their
// boxes are equal or disjoint, and the ranges of equal boxes follow one another.
void check_coverage(std::string_view file_name, const Index& index);

// Adds the pieces and files of `part` to `whole`. UserError if they disagree about a tensor.
void merge(std::string_view file_name, Index& whole, Index part);

}  // namespace kintsugi::checkpoint
