// The header of a safetensors file: the tensors that it holds, and where.
// Format: https://huggingface.co/docs/safetensors, restated at the top of safetensors_header.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::checkpoint {

struct SafetensorsEntry {
  tensor::DType dtype = tensor::DType::f32;
  std::vector<int64_t> shape;  // elements
  uint64_t begin = 0;          // bytes from the start of the data
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> foreign;  // name -> dtype, for tensors of an unsupported dtype
  std::map<std::string, std::string> metadata;
  uint64_t data_begin = 0;  // bytes from the start of the file
};

// Both functions take the first bytes of a file and its size, and throw UserError "[safetensors] "NAME": ..." on any
// violation of the format. This one returns the size of length field and header, from the first 8 bytes.
uint64_t safetensors_head_size(std::string_view file_name, std::span<const std::byte> start, uint64_t file_size);
// Parses the header, given all of those bytes.
SafetensorsHeader parse_safetensors_header(std::string_view file_name, std::span<const std::byte> start,
                                           uint64_t file_size);

// A tensor to write; the data follow in the order of the list.
struct SafetensorsTensor {
  std::string name;
  tensor::DType dtype = tensor::DType::f32;
  std::vector<int64_t> shape;

  uint64_t bytes() const;
};

// The bytes that precede the data, padded with spaces so that the data begin at a multiple of 8.
std::string print_safetensors_header(const std::vector<SafetensorsTensor>& tensors,
                                     const std::map<std::string, std::string>& metadata);

}  // namespace kintsugi::checkpoint
