// What the threads of one process share: who waits, whether the world has ended, and where groups meet.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kintsugi/comm/bell.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/comm/late.h"
#include "kintsugi/comm/slot_ring.h"

namespace kintsugi::comm {

// The operations of a group; ranks are of the world, members count from 0.
struct ThreadGroup {
  static constexpr uint64_t kCollectives = 256, kMessages = 64;  // open at once, per pair

  explicit ThreadGroup(std::vector<int> world_ranks);
  SlotRing& messages(int from, int to) { return messages_[static_cast<size_t>(from) * ranks.size() + to]; }

  const std::vector<int> ranks;
  SlotRing collectives;
  std::atomic<int> blocked{0};  // members that wait for a slot to become free

 private:
  std::vector<SlotRing> messages_;  // [from][to]
};

class ThreadHouse {
 public:
  ThreadHouse(int size, const WorldOptions& options);

  int size() const { return size_; }
  std::chrono::milliseconds time_limit() const { return time_limit_; }
  bool cores_to_spare() const { return cores_to_spare_; }
  Bell& bell(int rank) { return seats_[rank].bell; }
  void ring(std::span<const int> ranks);

  // True if `rank` may touch the buffers of others now; then unlock() follows soon. Never after the end.
  bool lock(int rank);
  void unlock(int rank) { seats_[rank].busy.store(false, std::memory_order_seq_cst); }

  bool ended() const { return ended_.load(std::memory_order_seq_cst); }
  // The first one says why. When it returns, nobody touches the buffers of another, and nobody will.
  void end(Late why);
  // The same; `text()` says why, or a word does where memory has run out.
  template <typename Text>
  void end_saying(const Text& text) noexcept;
  // After the end. Where time ran out, and `own` lacks somebody, a rank says what it waited for itself.
  [[noreturn]] void throw_end(const Late& own);

  // Returns when all members have come.
  std::shared_ptr<ThreadGroup> meet(int rank, std::span<const int> ranks);

 private:
  struct alignas(64) Seat {
    Bell bell;
    std::atomic<bool> busy{false};
  };
  struct Meeting {
    std::vector<int> ranks;
    std::vector<Came> came;
    size_t count = 0;
    std::shared_ptr<ThreadGroup> group;  // when all have come
    std::string quarrel;                 // why they never will
  };

  std::shared_ptr<Meeting> join(int rank, std::span<const int> ranks);  // all of these under mutex_
  void look_for_quarrel(int rank, Meeting& meeting);
  void drain();

  const int size_;
  const std::chrono::milliseconds time_limit_;
  const bool cores_to_spare_;
  std::unique_ptr<Seat[]> seats_;
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  std::condition_variable met_;
  Late why_;
  std::list<std::shared_ptr<Meeting>> meetings_;
  std::vector<std::shared_ptr<Meeting>> place_;  // of each rank that waits in a meeting
};

template <typename Text>
void ThreadHouse::end_saying(const Text& text) noexcept {
  Late why;
  try {
    why.text = text();
  } catch (const std::bad_alloc&) {
    why.text = "no more memory";  // so short that it lies in the string itself
  }
  end(std::move(why));
}

}  // namespace kintsugi::comm
