#include "kintsugi/base/read_only_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "kintsugi/base/error.h"

namespace kintsugi::base {
namespace {

constexpr uint64_t kBlock = 1 << 20;

[[noreturn]] void fail(std::string_view what, const std::filesystem::path& path, int reason) {
  throw UserError("file", "cannot {} \"{}\": {}", what, path.string(), std::strerror(reason));
}

}  // namespace

ReadOnlyFile::ReadOnlyFile(std::filesystem::path path) : path_(std::move(path)) {
  descriptor_ =
      ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // O_NONBLOCK: do not wait for the writer of a FIFO
  if (descriptor_ < 0) fail("open", path_, errno);
  struct stat status = {};
  const int reason = ::fstat(descriptor_, &status) != 0 ? errno : S_ISDIR(status.st_mode) ? EISDIR : 0;
  if (reason != 0 || !S_ISREG(status.st_mode)) {
    ::close(std::exchange(descriptor_, -1));
    if (reason != 0) fail("read", path_, reason);
    throw UserError("file", "\"{}\" is not a regular file", path_.string());
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

ReadOnlyFile::ReadOnlyFile(ReadOnlyFile&& other) noexcept {
  *this = std::move(other);
}

ReadOnlyFile& ReadOnlyFile::operator=(ReadOnlyFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

ReadOnlyFile::~ReadOnlyFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ReadOnlyFile::read_at(uint64_t offset, std::span<std::byte> out) const {
  require(offset <= size_ && out.size() <= size_ - offset, "file", "bytes {} + {} of {}", offset, out.size(), size_);
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::pread(descriptor_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("read", path_, errno);
    if (n == 0) {
      throw UserError("file", "\"{}\" was truncated while in use: it had {} bytes, now it ends at byte {} or before",
                      path_.string(), size_, offset + done);
    }
    done += static_cast<size_t>(n);
  }
}

void ReadOnlyFile::read_ahead(uint64_t offset, uint64_t bytes) const {
  constexpr uint64_t kAtOnce = 512 << 10;  // Linux may ignore the rest of larger requests
  for (const uint64_t end = offset + bytes; offset < end; offset += kAtOnce)
    ::posix_fadvise(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(std::min(kAtOnce, end - offset)),
                    POSIX_FADV_WILLNEED);
}

void for_each_block(const ReadOnlyFile& file, uint64_t offset, uint64_t size,
                    const std::function<void(std::span<const std::byte>)>& f) {
  std::vector<std::byte> block(std::min(size, kBlock));
  for (uint64_t done = 0; done < size;) {
    const std::span<std::byte> part = std::span(block).first(std::min(size - done, kBlock));
    file.read_at(offset + done, part);
    f(part);
    done += part.size();
  }
}

void for_each_block(const ReadOnlyFile& file, const std::function<void(std::span<const std::byte>)>& f) {
  for_each_block(file, 0, file.size(), f);
}

uint64_t checksum_of(const ReadOnlyFile& file) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(), XXH3_freeState);
  XXH3_64bits_reset(hash.get());
  for_each_block(file,
                 [&](std::span<const std::byte> block) { XXH3_64bits_update(hash.get(), block.data(), block.size()); });
  return XXH3_64bits_digest(hash.get());
}

}  // namespace kintsugi::base
