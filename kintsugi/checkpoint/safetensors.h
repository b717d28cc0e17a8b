// Safetensors files: random-access reading, streaming writing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/file.h"
#include "kintsugi/base/read_only_file.h"
#include "kintsugi/checkpoint/safetensors_header.h"

namespace kintsugi::checkpoint {

// A row-major tensor in a file. Valid as long as its SafetensorsFile exists and is not moved.
struct TensorInFile {
  tensor::DType dtype = tensor::DType::f32;
  std::span<const int64_t> shape;
  uint64_t bytes = 0;
  uint64_t begin = 0;  // bytes from the start of the file
  const base::ReadOnlyFile* file = nullptr;

  // Fills `out` with the tensor's bytes from `offset`. Throws UserError as ReadOnlyFile::read_at() does.
  void read_at(uint64_t offset, std::span<std::byte> out) const { file->read_at(begin + offset, out); }
  void read_ahead(uint64_t offset, uint64_t size) const { file->read_ahead(begin + offset, size); }
  void for_each_block(const std::function<void(std::span<const std::byte>)>& f) const {
    base::for_each_block(*file, begin, bytes, f);
  }
};

uint64_t checksum_of(const TensorInFile& tensor);

// Reader. Validates the whole header on construction; throws UserError if the file is not valid.
class SafetensorsFile {
 public:
  SafetensorsFile() = default;
  explicit SafetensorsFile(const std::filesystem::path& path);

  const SafetensorsHeader& header() const { return header_; }
  bool has(std::string_view name) const { return header_.tensors.find(name) != header_.tensors.end(); }
  std::vector<std::byte> head() const;           // length field and header
  TensorInFile at(std::string_view name) const;  // UserError, suggesting the nearest name, if there is none

 private:
  base::ReadOnlyFile file_;
  SafetensorsHeader header_;
};

// Writer. Declare the tensors first, then write their bytes in the same order, in blocks of any size; buffers at most a
// few megabytes. close() syncs the file; InternalError if bytes are missing.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, const std::vector<SafetensorsTensor>& tensors,
                    const std::map<std::string, std::string>& metadata = {},
                    base::Writing way = base::Writing::through_cache);

  void write(std::span<const std::byte> bytes);
  void close();
  void close_unsynced();
  uint64_t size() const { return file_.size(); }     // bytes written so far
  const std::string& head() const { return head_; }  // length field and header

 private:
  std::string head_;
  base::FileWriter file_;
  uint64_t left_ = 0;
};

}  // namespace kintsugi::checkpoint
