#include "kintsugi/comm/bell.h"

#include "hwy/cache_control.h"

namespace kintsugi::comm {
namespace {
constexpr std::chrono::microseconds kSpin{40};  // about what a sleep and its end cost
}

// Either the ringer sees that the waiter is asleep, or the waiter sees the ring: both orders are sequential.
void Bell::ring() {
  rings_.fetch_add(1, std::memory_order_seq_cst);
  if (asleep_.load(std::memory_order_seq_cst)) {
    const std::lock_guard lock(mutex_);
    changed_.notify_one();
  }
}

void Bell::wait(uint64_t seen, Time limit, bool spin) {
  if (spin) {
    const Time end = std::chrono::steady_clock::now() + kSpin;
    do {
      for (int i = 0; i < 32; ++i) {
        if (rings() != seen) return;
        hwy::Pause();
      }
    } while (std::chrono::steady_clock::now() < end);
  }
  asleep_.store(true, std::memory_order_seq_cst);
  {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, limit, [&] { return rings() != seen; });
  }
  asleep_.store(false, std::memory_order_relaxed);
}

}  // namespace kintsugi::comm
