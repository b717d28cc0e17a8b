// A file of one rank for data that is not in memory while unused, read and written concurrently with computation.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace kintsugi::run {

// The file has no name, and its disk space is allocated in advance: it is deleted when the store, or the process, ends.
// One thread serves all requests in order.
class FileStore {
 public:
  // Throws UserError if the folder does not exist or is not writable, or if the disk lacks the space. `rank` is for
  // messages.
  FileStore(std::filesystem::path folder, int64_t bytes, int rank);
  ~FileStore();  // completes all requests
  FileStore(const FileStore&) = delete;
  FileStore& operator=(const FileStore&) = delete;

  // Enqueue requests, without allocating. The memory must not be touched until the request has been waited for.
  using Ticket = int64_t;
  Ticket read(int64_t offset, std::span<std::byte> to);
  Ticket write(int64_t offset, std::span<const std::byte> from);

  // Waits until the request of that ticket is done. Throws UserError if it, or an earlier one, failed: after a failure
  // none is attempted.
  void wait(Ticket ticket);

  int64_t bytes() const { return bytes_; }
  // Total seconds that wait() took: the time not hidden behind computation.
  double waited_seconds() const { return waited_; }

 private:
  struct Request {
    int64_t offset = 0;
    std::byte* data = nullptr;
    size_t size = 0;
    bool writes = false;
  };
  Ticket enqueue(const Request& request);
  void serve();
  void carry_out(const Request& request) const;

  std::filesystem::path folder_;
  int64_t bytes_ = 0;
  int rank_ = 0;
  int descriptor_ = -1;
  double waited_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Request> ring_;  // of fixed size; request t is at t % size
  Ticket asked_ = 0, done_ = 0;
  std::exception_ptr error_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace kintsugi::run
