// Wakes the one thread that waits on it. Call notify() after changing anything that thread may wait for.
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
  // Number of notify() calls so far. Read it before checking the condition, then pass it to wait().
  uint64_t count() const { return count_.load(std::memory_order_seq_cst); }
  // Returns when count() differs from `seen`, or at `limit`. Sleeps; with `spin`, spins for a short time first.
  void wait(uint64_t seen, Time limit, bool spin);

 private:
  std::atomic<uint64_t> count_{0};
  std::atomic<bool> asleep_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace kintsugi::comm
