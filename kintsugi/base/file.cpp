#include "kintsugi/base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "kintsugi/base/error.h"

namespace kintsugi::base {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

[[noreturn]] void fail(std::string_view what, const std::filesystem::path& path) {
  throw UserError("file", "cannot {} \"{}\": {}", what, path.string(), std::strerror(errno));
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail("open", path);
  std::string content;
  char block[1 << 16];
  ssize_t n = 0;
  while ((n = ::read(descriptor, block, sizeof block)) > 0) content.append(block, static_cast<size_t>(n));
  ::close(descriptor);
  if (n < 0) fail("read", path);
  return content;
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::path part = path;
  part += ".part";
  {
    FileWriter writer(part);
    writer.write(content);
    writer.close();
  }
  if (::rename(part.c_str(), path.c_str()) != 0) fail("rename", part);
  sync_folder(path.parent_path());
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  sync_folder(from);
  if (::rename(from.c_str(), to.c_str()) != 0) fail("rename", from);
  sync_folder(to.parent_path());
}

void sync_folder(const std::filesystem::path& folder) {
  const std::filesystem::path real = folder.empty() ? "." : folder;
  const int descriptor = ::open(real.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail("open", real);
  // A file system that has no sync for folders answers EINVAL; its renames are as durable as it makes them.
  const bool failed = ::fsync(descriptor) != 0 && errno != EINVAL;
  ::close(descriptor);
  if (failed) fail("sync", real);
}

void make_folders(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw UserError("file", "cannot make folder \"{}\": {}", folder.string(), error.message());
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail("open", path);
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0 || S_ISDIR(status.st_mode)) {
    if (S_ISDIR(status.st_mode)) errno = EISDIR;
    const int reason = errno;
    ::close(descriptor);
    errno = reason;
    fail("read", path);
  }
  size_ = static_cast<size_t>(status.st_size);
  void* data = size_ ? ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0) : nullptr;
  ::close(descriptor);
  if (data == MAP_FAILED) fail("map", path);
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

FileWriter::FileWriter(const std::filesystem::path& path) : path_(path) {
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("write", path);
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileWriter::write(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (buffer_.size() >= kBufferBytes) flush();
}

void FileWriter::flush() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t n = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write", path_);
    done += static_cast<size_t>(n);
  }
  buffer_.clear();
}

void FileWriter::close() {
  flush();
  if (::fsync(descriptor_) != 0 && errno != EINVAL) fail("sync", path_);
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0) fail("close", path_);
}

FileLock::FileLock(const std::filesystem::path& path, std::string_view taken) {
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("write", path);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return;
  const bool held = errno == EWOULDBLOCK;
  const int reason = errno;
  ::close(descriptor_);
  errno = reason;
  if (!held) fail("lock", path);
  throw UserError("file", "{}", taken);
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FolderIdentity::FolderIdentity(const std::filesystem::path& folder) {
  descriptor_ = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) fail("open", folder);
}

FolderIdentity::FolderIdentity(FolderIdentity&& other) noexcept {
  *this = std::move(other);
}

FolderIdentity& FolderIdentity::operator=(FolderIdentity&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FolderIdentity::~FolderIdentity() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool FolderIdentity::is_at(const std::filesystem::path& path) const {
  struct stat mine = {}, there = {};
  if (::fstat(descriptor_, &mine) != 0) return errno != ESTALE;
  if (::stat(path.c_str(), &there) != 0) return errno != ENOENT && errno != ENOTDIR && errno != ESTALE;
  return mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

}  // namespace kintsugi::base
