// The state that the ranks of a threads world share: who waits, whether the world has ended, and groups being made.
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

#include "kintsugi/comm/communicator.h"
#include "kintsugi/comm/notifier.h"
#include "kintsugi/comm/operation_queue.h"
#include "kintsugi/comm/timeout_message.h"

namespace kintsugi::comm {

// The operations of a group; `ranks` are of the world, members count from 0.
struct ThreadGroup {
  ThreadGroup(std::vector<int> world_ranks, const GroupOptions& options);
  OperationQueue& messages(int from, int to) { return messages_[static_cast<size_t>(from) * ranks.size() + to]; }

  const std::vector<int> ranks;
  const GroupOptions options;
  OperationQueue collectives;
  std::atomic<int> blocked{0};  // members that wait for an entry to become free

 private:
  std::vector<OperationQueue> messages_;  // [from][to]
};

class ThreadWorldState {
 public:
  ThreadWorldState(int size, const WorldOptions& options);

  int size() const { return size_; }
  std::chrono::milliseconds time_limit() const { return time_limit_; }
  bool cores_to_spare() const { return cores_to_spare_; }  // each rank has a core of its own, and may spin
  Notifier& notifier(int rank) { return ranks_[rank].notifier; }
  void notify(std::span<const int> ranks);

  // True if `rank` may touch the buffers of others now, until unlock(), which follows soon. False after the end.
  bool lock(int rank);
  void unlock(int rank) { ranks_[rank].busy.store(false, std::memory_order_seq_cst); }

  bool ended() const { return ended_.load(std::memory_order_seq_cst); }
  // Ends the world; the first caller's reason is kept. When it returns, no rank touches the buffers of another any
  // more.
  void end(TimeoutMessage why);
  // The same with the text of `make_text()`, or a short one if there is no memory for it.
  template <typename MakeText>
  void end_with_text(const MakeText& make_text) noexcept;
  // After the end: throws its reason as a Timeout. If that is a time limit, and a member is also missing from the
  // operation of this rank, throws `own` instead, which names the operation that this rank waited for.
  [[noreturn]] void throw_end(const TimeoutMessage& own);

  // The group of `ranks`, when all of them have called this.
  std::shared_ptr<ThreadGroup> make_group(int rank, std::span<const int> ranks, const GroupOptions& options);

 private:
  struct alignas(64) RankState {
    Notifier notifier;
    std::atomic<bool> busy{false};
  };
  // A group for which some members have called, and others not yet.
  struct PendingGroup {
    std::vector<int> ranks;
    GroupOptions options = {.collectives = 0, .messages = 0};  // the largest so far
    std::vector<Arrival> arrivals;
    size_t count = 0;                    // of those that have arrived
    std::shared_ptr<ThreadGroup> group;  // when all have
    std::string disagreement;            // why it never will be complete
  };

  // Requires mutex_, as does the next.
  std::shared_ptr<PendingGroup> join(int rank, std::span<const int> ranks, const GroupOptions& options);
  void look_for_disagreement(int rank, PendingGroup& pending);
  void wait_until_nobody_is_busy();

  const int size_;
  const std::chrono::milliseconds time_limit_;
  const bool cores_to_spare_;
  std::unique_ptr<RankState[]> ranks_;
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  std::condition_variable changed_;  // a pending group, or ended_
  TimeoutMessage why_;
  std::list<std::shared_ptr<PendingGroup>> pending_;
  std::vector<std::shared_ptr<PendingGroup>> waits_in_;  // [rank]; null: it waits for no group
};

template <typename MakeText>
void ThreadWorldState::end_with_text(const MakeText& make_text) noexcept {
  TimeoutMessage why;
  try {
    why.text = make_text();
  } catch (const std::bad_alloc&) {
    why.text = "no more memory";  // so short that it needs no allocation
  }
  end(std::move(why));
}

}  // namespace kintsugi::comm
