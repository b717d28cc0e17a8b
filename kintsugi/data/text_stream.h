// The bytes of a file of text: as they lie there, or those that were compressed into it.
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

  // Fills `to`, but for the end of the text. Returns how many bytes. UserError "[prepare] ..." if the file cannot be
  // read or is damaged.
  virtual size_t read(std::span<char> to) = 0;
  // Passes over the next `count` bytes.
  virtual void skip(uint64_t count);
  // Bytes of the file in which lies what was read, about.
  virtual uint64_t consumed() const = 0;
};

enum class Compression { none, gzip, zstd };

// By the first bytes of a file. Skippable frames before a frame of zstd (pzstd writes them) are passed over.
Compression compression_of(std::string_view head);

// What the first bytes of a file that is no text say it is: "an archive (zip)"; "" if they say nothing.
std::string_view known_format(std::string_view head);

// From the first byte on; errors call the file `name`. UserError if the file cannot be opened, or if the build lacks
// the library.
std::unique_ptr<TextStream> open_text(const std::filesystem::path& path, Compression compression,
                                      const std::string& name);

inline std::unique_ptr<TextStream> open_text(const std::filesystem::path& path, Compression compression) {
  return open_text(path, compression, path.string());
}

// A leaf for each library, and one for its absence.
std::unique_ptr<TextStream> open_gzip(const std::filesystem::path& path, const std::string& name);
std::unique_ptr<TextStream> open_zstd(const std::filesystem::path& path, const std::string& name);

}  // namespace kintsugi::data
