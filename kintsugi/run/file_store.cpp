#include "kintsugi/run/file_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/start_thread.h"

namespace kintsugi::run {
namespace {

constexpr size_t kRequests = 64;  // maximum in flight; a caller with more waits for a slot

// A file without a name.
int open_nameless(const std::filesystem::path& folder, int rank) {
  std::string name = (folder / ".offload_XXXXXX").string();
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0)
    throw base::UserError(
        "offload",
        "rank {} cannot make a file in \"{}\": {}; parallel.offload_folder must be an existing, writable folder", rank,
        folder.string(), std::strerror(errno));
  ::unlink(name.c_str());
  return descriptor;
}

std::string free_in(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  return error ? std::string("nobody knows how much") : base::format_bytes(space.available);
}

}  // namespace

FileStore::FileStore(std::filesystem::path folder, int64_t bytes, int rank)
    : folder_(folder.empty() ? std::filesystem::path(".") : std::move(folder)), bytes_(bytes), rank_(rank) {
  descriptor_ = open_nameless(folder_, rank);
  int reason = EINTR;
  while (bytes > 0 && reason == EINTR) reason = ::posix_fallocate(descriptor_, 0, bytes);
  if (bytes > 0 && reason != 0) {
    ::close(descriptor_);  // which frees the space taken so far
    throw base::UserError("offload",
                          "rank {} needs a file of {} ({} bytes) in \"{}\", where {} is free: {}; set "
                          "parallel.offload_folder to a disk with more space, or parallel.offload to less",
                          rank, base::format_bytes(static_cast<uint64_t>(bytes)), bytes, folder_.string(),
                          free_in(folder_), std::strerror(reason));
  }
  try {
    ring_.resize(kRequests);
    thread_ = base::start_thread([this] { serve(); });
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

FileStore::~FileStore() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
  ::close(descriptor_);
}

FileStore::Ticket FileStore::read(int64_t offset, std::span<std::byte> to) {
  return enqueue({offset, to.data(), to.size(), false});
}

FileStore::Ticket FileStore::write(int64_t offset, std::span<const std::byte> from) {
  return enqueue({offset, const_cast<std::byte*>(from.data()), from.size(), true});
}

FileStore::Ticket FileStore::enqueue(const Request& request) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return asked_ - done_ < static_cast<Ticket>(ring_.size()); });
  ring_[static_cast<size_t>(asked_) % ring_.size()] = request;
  const Ticket ticket = asked_++;
  lock.unlock();
  changed_.notify_all();
  return ticket;
}

void FileStore::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  if (done_ <= ticket) {
    const auto began = std::chrono::steady_clock::now();
    changed_.wait(lock, [&] { return done_ > ticket; });
    waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
  if (error_) std::rethrow_exception(error_);
}

// Requests complete even if they fail, so that no caller waits forever.
void FileStore::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || done_ < asked_; });
    if (done_ == asked_) return;
    const Request request = ring_[static_cast<size_t>(done_) % ring_.size()];
    if (!error_) {
      lock.unlock();
      std::exception_ptr failed;
      try {
        carry_out(request);
      } catch (...) {
        failed = std::current_exception();
      }
      lock.lock();
      error_ = failed;
    }
    ++done_;
    changed_.notify_all();
  }
}

void FileStore::carry_out(const Request& request) const {
  size_t done = 0;
  while (done < request.size) {
    const auto at = static_cast<off_t>(request.offset + static_cast<int64_t>(done));
    const ssize_t n = request.writes ? ::pwrite(descriptor_, request.data + done, request.size - done, at)
                                     : ::pread(descriptor_, request.data + done, request.size - done, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      throw base::UserError("offload", "rank {} cannot {} {} bytes at {} of its file in \"{}\": {}", rank_,
                            request.writes ? "write" : "read", request.size, request.offset, folder_.string(),
                            n < 0 ? std::strerror(errno) : "it ends before");
    done += static_cast<size_t>(n);
  }
}

}  // namespace kintsugi::run
