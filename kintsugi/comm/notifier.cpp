#include "kintsugi/comm/notifier.h"

#include "hwy/cache_control.h"

namespace kintsugi::comm {
namespace {
constexpr std::chrono::microseconds kSpin{40};  // about the cost of going to sleep and waking up
}

// Both sides write their own atomic before reading the other's, sequentially consistent: either notify() sees that the
// thread sleeps, or the thread sees the new count.
void Notifier::notify() {
  count_.fetch_add(1, std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst)) {
    const std::lock_guard lock(mutex_);
    changed_.notify_one();
  }
}

void Notifier::wait(uint64_t seen, Time limit, bool spin) {
  if (spin) {
    const Time end = std::chrono::steady_clock::now() + kSpin;
    constexpr int kMostRounds = 10'000;  // in case the clock stops or goes back
    for (int round = 0; round == 0 || (round < kMostRounds && std::chrono::steady_clock::now() < end); ++round)
      for (int i = 0; i < 32; ++i) {
        if (count() != seen) return;
        hwy::Pause();
      }
  }
  asleep_.store(true, std::memory_order_seq_cst);
  {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, limit, [&] { return count() != seen; });
  }
  asleep_.store(false, std::memory_order_relaxed);
}

}  // namespace kintsugi::comm
