// A file of bytes that is read at any place: as it is, or as it was before gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/base/read_only_file.h"

namespace kintsugi::images {

// Const use is safe from several threads.
class ByteFile {
 public:
  // What was compressed is decompressed into memory. UserError if the file cannot be read or is damaged.
  explicit ByteFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  int64_t size() const { return size_; }
  // Bytes [offset, offset + out.size()) of the content. Allocates nothing.
  void read_at(int64_t offset, std::span<std::byte> out) const;
  // The first bytes, at most `count`.
  std::string head(int64_t count) const;
  std::string fingerprint() const;  // of the content, as 16 hexadecimal digits

 private:
  base::ReadOnlyFile file_;
  bool in_memory_ = false;
  std::vector<std::byte> content_;
  int64_t size_ = 0;
};

}  // namespace kintsugi::images
