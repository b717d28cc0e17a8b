// The bytes of a text file, decompressed if necessary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kintsugi::data {

class TextStream {
 public:
  virtual ~TextStream() = default;

  // Fills `to`, except at the end of the text. Returns the number of bytes. Throws UserError "[prepare] ..." if the
  // file cannot be read or is corrupt.
  virtual size_t read(std::span<char> to) = 0;
  // Skips the next `count` bytes.
  virtual void skip(uint64_t count);
  // Approximate number of file bytes consumed so far.
  virtual uint64_t consumed() const = 0;
};

enum class Compression { none, gzip, zstd };

// Detects the compression by the first bytes of a file. Ignores skippable frames before a zstd frame (pzstd writes
// them).
Compression compression_of(std::string_view head);

// Identifies a non-text file by its first bytes: "an archive (zip)"; "" if unknown.
std::string_view known_format(std::string_view head);

// Reads from the first byte; error messages call the file `name`. Throws UserError if the file cannot be opened, or if
// this build lacks the library.
std::unique_ptr<TextStream> open_text(const std::filesystem::path& path, Compression compression,
                                      const std::string& name);

inline std::unique_ptr<TextStream> open_text(const std::filesystem::path& path, Compression compression) {
  return open_text(path, compression, path.string());
}

// One implementation per library, and one for its absence.
std::unique_ptr<TextStream> open_gzip(const std::filesystem::path& path, const std::string& name);
std::unique_ptr<TextStream> open_zstd(const std::filesystem::path& path, const std::string& name);

}  // namespace kintsugi::data
