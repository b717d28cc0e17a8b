// A file of one rank for what does not lie in memory while it is not used, read and written beside computing.
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

// The file has no name, and its space on the disk is taken before anything is written: it goes with its last byte when
// the store, or the process, ends. One thread serves all requests, in their order.
class FileStore {
 public:
  // UserError where the folder does not exist or cannot be written, or where the disk has not that much room. `rank` is
  // for what errors say.
  FileStore(std::filesystem::path folder, int64_t bytes, int rank);
  ~FileStore();  // ends when all requests are done
  FileStore(const FileStore&) = delete;
  FileStore& operator=(const FileStore&) = delete;

  // Enqueue; nothing is allocated. The memory belongs to the request until it was waited for.
  using Ticket = int64_t;
  Ticket read(int64_t offset, std::span<std::byte> to);
  Ticket write(int64_t offset, std::span<const std::byte> from);

  // Until the request of that ticket is done. UserError where it, or one before it, failed: none is tried after that.
  void wait(Ticket ticket);

  int64_t bytes() const { return bytes_; }
  // Seconds that wait() took together: what was not hidden behind computing.
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
  std::vector<Request> ring_;  // of fixed size; request t stands at t % size
  Ticket asked_ = 0, done_ = 0;
  std::exception_ptr error_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace kintsugi::run
