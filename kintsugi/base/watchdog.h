// Ends this process where a library does not come back within a time limit, and cannot be told to give up: MPI waits
// for all ranks as it starts, as it makes a communicator and as it ends, and for a kernel that never ends whoever frees
// memory of its device waits too.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace kintsugi::base {

class Watchdog {
 public:
  // Watches from here on. Says "[module] rank 0: what did not end within 3 s" and `why`.
  Watchdog(std::string module, int rank, std::string what, std::string why, std::chrono::milliseconds limit);
  ~Watchdog();  // it ended in time
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Watches nothing until start(), from which on the limit counts anew. By one thread at a time; next to free.
  void rest() { turns_ = (turns_ + 1) & ~uint64_t{1}; }
  void start() { turns_ = (turns_ + 1) | 1; }

 private:
  void watch();
  [[noreturn]] void end_process() const;

  const std::string module_;
  const int rank_;
  const std::string what_, why_;
  const std::chrono::milliseconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::atomic<uint64_t> turns_{1};  // starts and rests; odd: it watches
  std::thread thread_;
};

}  // namespace kintsugi::base
