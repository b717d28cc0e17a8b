#include "kintsugi/images/byte_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>

#include "kintsugi/base/error.h"
#include "kintsugi/data/text_stream.h"

namespace kintsugi::images {
namespace {

constexpr size_t kMostInMemory = size_t{16} << 30;

std::vector<std::byte> decompressed(const std::filesystem::path& path) {
  const std::unique_ptr<data::TextStream> stream = data::open_text(path, data::Compression::gzip);
  std::vector<std::byte> content;
  std::vector<char> block(1 << 20);
  while (const size_t n = stream->read(block)) {
    const auto bytes = std::as_bytes(std::span(block).first(n));
    content.insert(content.end(), bytes.begin(), bytes.end());
    if (content.size() > kMostInMemory)
      throw base::UserError("images", "\"{}\" holds more than 16 GiB; decompress it first", path.string());
  }
  return content;
}

}  // namespace

ByteFile::ByteFile(const std::filesystem::path& path) : file_(path), size_(static_cast<int64_t>(file_.size())) {
  if (data::compression_of(head(4)) != data::Compression::gzip) return;
  content_ = decompressed(path);
  in_memory_ = true;
  size_ = std::ssize(content_);
}

void ByteFile::read_at(int64_t offset, std::span<std::byte> out) const {
  base::require(offset >= 0 && offset + std::ssize(out) <= size_, "images", "bytes {} to {} of {} are read", offset,
                offset + std::ssize(out), size_);
  if (!in_memory_) return file_.read_at(static_cast<uint64_t>(offset), out);
  std::copy_n(content_.begin() + offset, out.size(), out.begin());
}

std::string ByteFile::head(int64_t count) const {
  std::string bytes(static_cast<size_t>(std::min(count, size_)), '\0');
  read_at(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

std::string ByteFile::fingerprint() const {
  if (in_memory_) return fmt::format("{:016x}", XXH3_64bits(content_.data(), content_.size()));
  return fmt::format("{:016x}", base::checksum_of(file_));
}

}  // namespace kintsugi::images
