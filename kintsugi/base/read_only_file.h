// Random-access file reading. Files are not memory-mapped: truncation of a mapped file by another program would end the
// process by a signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

namespace kintsugi::base {

// Movable, not copyable. Const member functions are thread-safe.
class ReadOnlyFile {
 public:
  ReadOnlyFile() = default;
  // Throws UserError that names the path if it cannot be opened, or is not a regular file.
  explicit ReadOnlyFile(std::filesystem::path path);
  ReadOnlyFile(ReadOnlyFile&& other) noexcept;
  ReadOnlyFile& operator=(ReadOnlyFile&& other) noexcept;
  ~ReadOnlyFile();

  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return size_; }  // when opened

  // Fills `out` with the bytes from `offset`, which must end within size(). Throws UserError that names the path on
  // system errors, or if the file has been truncated since it was opened. Does not allocate.
  void read_at(uint64_t offset, std::span<std::byte> out) const;
  // Asks the system to prefetch the range into its page cache; returns at once.
  void read_ahead(uint64_t offset, uint64_t bytes) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

// Calls f with the bytes [offset, offset + size) of the file, in order, at most 1 MiB at a time.
void for_each_block(const ReadOnlyFile& file, uint64_t offset, uint64_t size,
                    const std::function<void(std::span<const std::byte>)>& f);
void for_each_block(const ReadOnlyFile& file, const std::function<void(std::span<const std::byte>)>& f);

// XXH3 (64 bits, seed 0) of the whole file.
uint64_t checksum_of(const ReadOnlyFile& file);

}  // namespace kintsugi::base
