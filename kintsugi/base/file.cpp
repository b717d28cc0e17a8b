#include "kintsugi/base/file.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/start_thread.h"

namespace kintsugi::base {
namespace {

constexpr size_t kBufferBytes = 2 << 20;
constexpr size_t kAlignment = 4096;         // alignment of direct writes; no disk requires more
constexpr uint64_t kBeginBytes = 32 << 20;  // bytes between requests to start writeback

[[noreturn]] void fail(std::string_view what, const std::filesystem::path& path) {
  throw UserError("file", "cannot {} \"{}\": {}", what, path.string(), std::strerror(errno));
}

[[noreturn]] void too_long(const std::filesystem::path& path, const MostBytes& most) {
  throw UserError("file", "\"{}\" has more than {}; {} has less", path.string(), format_bytes(most.bytes), most.what);
}

// Opens for reading without waiting for the writer of a FIFO.
struct Opened {
  explicit Opened(const std::filesystem::path& path)
      : descriptor(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    if (descriptor < 0) fail("open", path);
    if (::fstat(descriptor, &status) == 0 && !S_ISDIR(status.st_mode)) {
      if (!S_ISFIFO(status.st_mode)) ::fcntl(descriptor, F_SETFL, O_RDONLY);  // reads of a terminal block
      return;
    }
    const int reason = S_ISDIR(status.st_mode) ? EISDIR : errno;
    ::close(descriptor);
    errno = reason;
    fail("read", path);
  }
  ~Opened() { ::close(descriptor); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  const int descriptor;
  struct stat status = {};
};

}  // namespace

std::string read_file(const std::filesystem::path& path, MostBytes most) {
  const Opened file(path);
  if (file.status.st_size > 0 && static_cast<uint64_t>(file.status.st_size) > most.bytes) too_long(path, most);
  std::string content;
  char block[1 << 16];
  for (;;) {
    const ssize_t n = ::read(file.descriptor, block, sizeof block);
    if (n < 0 && errno == EAGAIN && S_ISFIFO(file.status.st_mode)) {  // it has a writer that has written nothing yet
      pollfd wait = {.fd = file.descriptor, .events = POLLIN, .revents = 0};
      ::poll(&wait, 1, -1);
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("read", path);
    if (n == 0) break;
    content.append(block, static_cast<size_t>(n));
    if (content.size() > most.bytes) too_long(path, most);
  }
  if (content.empty() && S_ISFIFO(file.status.st_mode))
    throw UserError("file", "\"{}\" is a FIFO into which no process writes; start the writer first", path.string());
  return content;
}

std::string read_file(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return read_file(path, {SIZE_MAX, ""});
  return read_file(path, {1 << 30, "the limit for a pipe or a device"});
}

std::filesystem::path temporary_folder() {
  const char* given = std::getenv("TMPDIR");
  const std::filesystem::path folder = given && *given ? given : "/tmp";
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    throw UserError("file", "the folder for temporary files, {}\"{}\", is not a folder; set TMPDIR to one",
                    given && *given ? "TMPDIR=" : "", folder.string());
  return folder;
}

void require_run_file(std::string_view where, const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) return;
  if (!std::filesystem::is_regular_file(status))
    throw UserError(where, "\"{}\" is not a regular file; move it away", path.string());
  const uint64_t bytes = std::filesystem::file_size(path, error);
  if (!error && bytes > kMostOfRunFile)
    throw UserError(where, "\"{}\" has {}; a run writes at most {}", path.string(), format_bytes(bytes),
                    format_bytes(kMostOfRunFile));
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::path part = path;
  part += ".part";
  try {
    FileWriter writer(part);
    writer.write(content);
    writer.close();
    if (::rename(part.c_str(), path.c_str()) != 0) fail("write", path);
  } catch (...) {
    ::unlink(part.c_str());
    throw;
  }
  sync_folder(path.parent_path());
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  sync_folder(from);
  if (::rename(from.c_str(), to.c_str()) != 0) fail("rename", from);
  sync_folder(to.parent_path());
}

bool exchange_folders(const std::filesystem::path& from, const std::filesystem::path& to) {
  sync_folder(from);
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) return false;
  sync_folder(to.parent_path());
  return true;
}

void sync_folder(const std::filesystem::path& folder) {
  const std::filesystem::path real = folder.empty() ? "." : folder;
  const int descriptor = ::open(real.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail("open", real);
  // A file system without fsync for folders returns EINVAL; its renames are as durable as it makes them.
  const bool failed = ::fsync(descriptor) != 0 && errno != EINVAL;
  ::close(descriptor);
  if (failed) fail("sync", real);
}

void make_folders(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw UserError("file", "cannot make folder \"{}\": {}", folder.string(), error.message());
}

MadeFolders::MadeFolders(const std::filesystem::path& folder) {
  std::error_code error;
  for (std::filesystem::path at = (folder / "").parent_path(); !at.empty() && !std::filesystem::exists(at, error);
       at = at.parent_path())
    made_.push_back(at);
  make_folders(folder);
}

void MadeFolders::remove_if_empty() noexcept {
  for (const std::filesystem::path& folder : made_)
    if (::rmdir(folder.c_str()) != 0) break;
  made_.clear();
}

void remove_if_possible(const std::filesystem::path& path) noexcept {
  // Not remove_all(): g++ 12's terminates the process when out of memory.
  constexpr int kOpenFolders = 16;
  const auto remove = [](const char* entry, const struct stat*, int, struct FTW*) {
    ::remove(entry);
    return 0;
  };
  ::nftw(path.c_str(), remove, kOpenFolders, FTW_DEPTH | FTW_PHYS);
}

// The thread that writes full buffers while the next is filled.
class FileWriter::Behind {
 public:
  explicit Behind(FileWriter& file) : file_(file) {
    spare_.reserve(kBuffers);
    thread_ = start_thread([this] { run(); });
  }
  ~Behind() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // Takes a full buffer and returns an empty one. Errors of the thread are thrown here or by wait().
  Buffer exchange(Buffer full) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !queued_; });
    if (error_) std::rethrow_exception(error_);
    queued_ = std::move(full);
    changed_.notify_all();
    if (spare_.empty()) return make_buffer();
    Buffer spare = std::move(spare_.back());
    spare_.pop_back();
    return spare;
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !queued_ && !writing_; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return queued_ || done_; });
      if (!queued_) return;
      Buffer buffer = std::move(queued_);
      writing_ = true;
      changed_.notify_all();
      lock.unlock();
      std::exception_ptr error;
      try {
        file_.write_all({buffer.get(), kBufferBytes}, true);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error && !error_) error_ = error;
      spare_.push_back(std::move(buffer));
      writing_ = false;
      changed_.notify_all();
    }
  }

  static constexpr size_t kBuffers = 2;  // one queued, one being written; the caller has a third

  FileWriter& file_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  Buffer queued_;
  std::vector<Buffer> spare_;
  bool writing_ = false, done_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last member: it uses the others
};

FileWriter::FileWriter(const std::filesystem::path& path, Writing way) : path_(path), way_(way) {
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("write", path);
}

FileWriter::~FileWriter() {
  behind_.reset();
  if (descriptor_ >= 0) ::close(descriptor_);
}

FileWriter::Buffer FileWriter::make_buffer() {
  Buffer buffer(static_cast<std::byte*>(std::aligned_alloc(kAlignment, kBufferBytes)));
  if (!buffer) throw std::bad_alloc();
  return buffer;
}

void FileWriter::write(std::span<const std::byte> bytes) {
  if (!buffer_) buffer_ = make_buffer();
  while (!bytes.empty()) {
    const std::span<const std::byte> some = bytes.first(std::min(bytes.size(), kBufferBytes - buffered_));
    std::memcpy(buffer_.get() + buffered_, some.data(), some.size());
    buffered_ += some.size();
    size_ += some.size();
    bytes = bytes.subspan(some.size());
    if (buffered_ < kBufferBytes) continue;
    if (way_ == Writing::through_cache) {
      write_all({buffer_.get(), kBufferBytes}, false);
      // Start writeback before the file is closed. Failure is not an error.
      if (size_ % kBeginBytes == 0) ::sync_file_range(descriptor_, 0, 0, SYNC_FILE_RANGE_WRITE);
    } else {
      if (!behind_) behind_ = std::make_unique<Behind>(*this);
      buffer_ = behind_->exchange(std::move(buffer_));
    }
    buffered_ = 0;
  }
}

void FileWriter::write_all(std::span<const std::byte> bytes, bool past_cache) {
  if (way_ == Writing::to_disk) set_past_cache(past_cache);
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EINVAL &&
        past_cache) {  // unsupported by the file system, or a write has ended inside a block
      set_past_cache(past_cache = false);
      continue;
    }
    if (n < 0) fail("write", path_);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

// Direct writes require whole disk blocks, as full buffers are, and support by the file system.
void FileWriter::set_past_cache(bool past_cache) {
  const int flags = ::fcntl(descriptor_, F_GETFL);
  ::fcntl(descriptor_, F_SETFL, past_cache ? flags | O_DIRECT : flags & ~O_DIRECT);
}

void FileWriter::close() {
  if (behind_) behind_->wait();
  write_all({buffer_.get(), std::exchange(buffered_, 0)}, false);
  if (::fsync(descriptor_) != 0 && errno != EINVAL) fail("sync", path_);
  close_unsynced();
}

void FileWriter::close_unsynced() {
  if (behind_) behind_->wait();
  write_all({buffer_.get(), std::exchange(buffered_, 0)}, false);
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0) fail("close", path_);
}

FileLock::FileLock(const std::filesystem::path& path, std::string_view taken) {
  while (true) {
    descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor_ < 0) fail("write", path);
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) break;
    // The previous holder may have removed the file after it was opened here.
    struct stat locked = {}, named = {};
    if (::fstat(descriptor_, &locked) != 0) fail("lock", path);
    if (::stat(path.c_str(), &named) == 0 && named.st_dev == locked.st_dev && named.st_ino == locked.st_ino) return;
    ::close(descriptor_);
  }
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

bool is_at(int descriptor, const std::filesystem::path& path) {
  struct stat mine = {}, there = {};
  if (::fstat(descriptor, &mine) != 0) return errno != ESTALE;
  if (::stat(path.c_str(), &there) != 0) return errno != ENOENT && errno != ENOTDIR && errno != ESTALE;
  return mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

}  // namespace kintsugi::base
