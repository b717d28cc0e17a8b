// Wakes the one thread that waits on it. Code that changes what that thread may wait for calls notify() afterwards.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace kintsugi::comm {

class Notifier {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void notify();
  // The number of calls of notify() so far. Read it before checking the condition, and pass it to wait().
  uint64_t count() const { return count_.load(std::memory_order_seq_cst); }
  // Returns when count() is no longer `seen`, or at `limit`. It sleeps; with `spin`, only after spinning for a short
  // time.
  void wait(uint64_t seen, Time limit, bool spin);

 private:
  std::atomic<uint64_t> count_{0};
  std::atomic<bool> asleep_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace kintsugi::comm
