// Ends this process if a library call that cannot be canceled does not return within a time limit: MPI waits for all
// ranks when it initializes, creates a communicator and finalizes, and freeing memory of a device waits for a kernel
// that never ends.
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
  // Starts watching. On timeout prints "[module] rank 0: what did not end within 3 s" and `why`.
  Watchdog(std::string module, int rank, std::string what, std::string why, std::chrono::milliseconds limit);
  ~Watchdog();  // the call returned in time
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Suspends watching until start(), which restarts the limit. Not thread-safe; very cheap.
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
  std::atomic<uint64_t> turns_{1};  // number of starts and rests; odd: watching
  std::thread thread_;
};

}  // namespace kintsugi::base
