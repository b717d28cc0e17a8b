// Files that are read at given positions. They are not mapped into memory: a mapped file that another program cuts
// short ends the process by a signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

namespace kintsugi::base {

// Movable, not copyable. Const use is safe from several threads.
class ReadOnlyFile {
 public:
  ReadOnlyFile() = default;
  // UserError that names the path if it cannot be opened, or is not a regular file.
  explicit ReadOnlyFile(std::filesystem::path path);
  ReadOnlyFile(ReadOnlyFile&& other) noexcept;
  ReadOnlyFile& operator=(ReadOnlyFile&& other) noexcept;
  ~ReadOnlyFile();

  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return size_; }  // when it was opened

  // Fills `out` with the bytes from `offset` on, which end within size(). UserError that names the path if the system
  // fails, or if the file has become shorter since it was opened. Allocates nothing.
  void read_at(uint64_t offset, std::span<std::byte> out) const;
  // The system begins to read what is not in its page cache, and returns.
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
