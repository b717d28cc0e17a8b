// Safetensors files: read through a memory map, written as a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/file.h"
#include "kintsugi/checkpoint/safetensors_header.h"

namespace kintsugi::checkpoint {

// A tensor in a mapped file: row-major, not necessarily aligned. Valid as long as its file.
struct TensorView {
  tensor::DType dtype = tensor::DType::f32;
  std::span<const int64_t> shape;
  std::span<const std::byte> bytes;
};

// Reading. The header is checked completely when the file is opened; UserError if the file is not valid.
class SafetensorsFile {
 public:
  SafetensorsFile() = default;
  explicit SafetensorsFile(const std::filesystem::path& path);

  const SafetensorsHeader& header() const { return header_; }
  bool has(std::string_view name) const { return header_.tensors.find(name) != header_.tensors.end(); }
  std::span<const std::byte> head() const { return file_.bytes().first(header_.data_begin); }  // length and header
  TensorView at(std::string_view name) const;  // UserError, with the nearest name, if there is no such tensor

 private:
  std::filesystem::path path_;
  base::MappedFile file_;
  SafetensorsHeader header_;
};

// Writing. The tensors are declared first; then their bytes follow in the same order, in blocks of any size; at most a
// few megabytes are buffered. `close` syncs, and is an InternalError before the last byte.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, const std::vector<SafetensorsTensor>& tensors,
                    const std::map<std::string, std::string>& metadata = {});

  void write(std::span<const std::byte> bytes);
  void close();
  uint64_t size() const { return file_.size(); }     // bytes of the file so far
  const std::string& head() const { return head_; }  // its length and header

 private:
  std::string head_;
  base::FileWriter file_;
  uint64_t left_ = 0;
};

}  // namespace kintsugi::checkpoint
