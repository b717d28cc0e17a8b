// Wakes one waiting thread. Whoever changes what another may wait for rings its bell afterwards.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace kintsugi::comm {

class Bell {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void ring();
  // How often it rang. Read before looking at what is waited for, and given to wait().
  uint64_t rings() const { return rings_.load(std::memory_order_seq_cst); }
  // Returns when it rang since `seen`, or at `limit`: after a short spin, where cores are to spare, by sleeping.
  void wait(uint64_t seen, Time limit, bool spin);

 private:
  std::atomic<uint64_t> rings_{0};
  std::atomic<bool> asleep_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace kintsugi::comm
