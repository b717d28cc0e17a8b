// Random access to a file, decompressed if it is gzipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/base/read_only_file.h"

namespace kintsugi::images {

// Const use is thread-safe.
class ByteFile {
 public:
  // Decompresses gzip into memory. Throws UserError if the file cannot be read or is corrupt.
  explicit ByteFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  int64_t size() const { return size_; }
  // Reads bytes [offset, offset + out.size()) of the content. Allocates nothing.
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
