// State shared by the ranks of a world of threads: who waits, whether the world has ended, and groups under
// construction.
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

// The operations of a group; `ranks` are world ranks, members are numbered from 0.
struct ThreadGroup {
  ThreadGroup(std::vector<int> world_ranks, const GroupOptions& options);
  OperationQueue& messages(int from, int to) { return messages_[static_cast<size_t>(from) * ranks.size() + to]; }

  const std::vector<int> ranks;
  const GroupOptions options;
  OperationQueue collectives;
  std::atomic<int> blocked{0};  // members waiting for a free entry

 private:
  std::vector<OperationQueue> messages_;  // [from][to]
};

class ThreadWorldState {
 public:
  ThreadWorldState(int size, const WorldOptions& options);

  int size() const { return size_; }
  std::chrono::milliseconds time_limit() const { return time_limit_; }
  bool cores_to_spare() const { return cores_to_spare_; }  // each rank has its own core and may spin
  Notifier& notifier(int rank) { return ranks_[rank].notifier; }
  void notify(std::span<const int> ranks);

  // Allows `rank` to access the buffers of others until unlock(), which must follow soon. Returns false once the world
  // has ended.
  bool lock(int rank);
  void unlock(int rank) { ranks_[rank].busy.store(false, std::memory_order_seq_cst); }

  bool ended() const { return ended_.load(std::memory_order_seq_cst); }
  // Ends the world; the first caller's reason is kept. On return no rank accesses the buffers of another any more.
  void end(TimeoutMessage why);
  // As end(), with the text of `make_text()`, or a short one if that cannot be allocated.
  template <typename MakeText>
  void end_with_text(const MakeText& make_text) noexcept;
  // After the end: throws its reason as a Timeout. If the reason is a time limit and a member is also missing from the
  // operation of this rank, throws `own` instead, which names that operation.
  [[noreturn]] void throw_end(const TimeoutMessage& own);

  // Returns the group of `ranks` once all of them have called.
  std::shared_ptr<ThreadGroup> make_group(int rank, std::span<const int> ranks, const GroupOptions& options);

 private:
  struct alignas(64) RankState {
    Notifier notifier;
    std::atomic<bool> busy{false};
  };
  // A group for which some members have called and others have not.
  struct PendingGroup {
    std::vector<int> ranks;
    GroupOptions options = {.collectives = 0, .messages = 0};  // maximum so far
    std::vector<Arrival> arrivals;
    size_t count = 0;                    // members that have called
    std::shared_ptr<ThreadGroup> group;  // set when all have
    std::string disagreement;            // why the group can never be completed
  };

  // Requires mutex_, like the next.
  std::shared_ptr<PendingGroup> join(int rank, std::span<const int> ranks, const GroupOptions& options);
  void look_for_disagreement(int rank, PendingGroup& pending);
  void wait_until_nobody_is_busy();

  const int size_;
  const std::chrono::milliseconds time_limit_;
  const bool cores_to_spare_;
  std::unique_ptr<RankState[]> ranks_;
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  std::condition_variable changed_;  // signals a pending group, or ended_
  TimeoutMessage why_;
  std::list<std::shared_ptr<PendingGroup>> pending_;
  std::vector<std::shared_ptr<PendingGroup>> waits_in_;  // [rank]; null: not waiting for a group
};

template <typename MakeText>
void ThreadWorldState::end_with_text(const MakeText& make_text) noexcept {
  TimeoutMessage why;
  try {
    why.text = make_text();
  } catch (const std::bad_alloc&) {
    why.text = "no more memory";  // short enough to need no allocation
  }
  end(std::move(why));
}

}  // namespace kintsugi::comm
