// Safetensors files: read at any place, written as a stream.
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

// A tensor in a file: row-major. Valid as long as its SafetensorsFile, which must stay where it is.
struct TensorInFile {
  tensor::DType dtype = tensor::DType::f32;
  std::span<const int64_t> shape;
  uint64_t bytes = 0;
  uint64_t begin = 0;  // bytes from the start of the file
  const base::ReadOnlyFile* file = nullptr;

  // Fills `out` with its bytes from `offset` on. UserError as ReadOnlyFile::read_at.
  void read_at(uint64_t offset, std::span<std::byte> out) const { file->read_at(begin + offset, out); }
  void read_ahead(uint64_t offset, uint64_t size) const { file->read_ahead(begin + offset, size); }
  void for_each_block(const std::function<void(std::span<const std::byte>)>& f) const {
    base::for_each_block(*file, begin, bytes, f);
  }
};

uint64_t checksum_of(const TensorInFile& tensor);

// Reading. The header is checked completely when the file is opened; UserError if the file is not valid.
class SafetensorsFile {
 public:
  SafetensorsFile() = default;
  explicit SafetensorsFile(const std::filesystem::path& path);

  const SafetensorsHeader& header() const { return header_; }
  bool has(std::string_view name) const { return header_.tensors.find(name) != header_.tensors.end(); }
  std::vector<std::byte> head() const;           // the length of the header, and the header
  TensorInFile at(std::string_view name) const;  // UserError, with the nearest name, if there is no such tensor

 private:
  base::ReadOnlyFile file_;
  SafetensorsHeader header_;
};

// Writing. The tensors are declared first; then their bytes follow in the same order, in blocks of any size; at most a
// few megabytes are buffered. `close` syncs, and is an InternalError before the last byte.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, const std::vector<SafetensorsTensor>& tensors,
                    const std::map<std::string, std::string>& metadata = {},
                    base::Writing way = base::Writing::through_cache);

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
