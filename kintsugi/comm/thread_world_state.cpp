#include "kintsugi/comm/thread_world_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "kintsugi/base/error.h"
#include "kintsugi/base/patience.h"
#include "kintsugi/base/processor.h"

namespace kintsugi::comm {

ThreadGroup::ThreadGroup(std::vector<int> world_ranks, const GroupOptions& most)
    : ranks(std::move(world_ranks)), options(most), collectives(static_cast<int>(ranks.size()), most.collectives) {
  messages_.reserve(ranks.size() * ranks.size());
  for (size_t from = 0; from < ranks.size(); ++from) {
    for (size_t to = 0; to < ranks.size(); ++to) messages_.emplace_back(2, from == to ? 0 : options.messages);
  }
}

ThreadWorldState::ThreadWorldState(int size, const WorldOptions& options)
    : size_(size),
      time_limit_(options.time_limit),
      cores_to_spare_(size <= base::usable_cores()),
      ranks_(new RankState[size]),
      waits_in_(size) {}

void ThreadWorldState::notify(std::span<const int> ranks) {
  for (const int rank : ranks) notifier(rank).notify();
}

bool ThreadWorldState::lock(int rank) {
  ranks_[rank].busy.store(true, std::memory_order_seq_cst);
  if (!ended()) return true;
  unlock(rank);
  return false;
}

// Runs after ended_ is set: a rank that became busy before did not see it, one that becomes busy later does.
void ThreadWorldState::wait_until_nobody_is_busy() {
  for (int rank = 0; rank < size_; ++rank) {
    while (ranks_[rank].busy.load(std::memory_order_seq_cst)) std::this_thread::yield();
  }
}

void ThreadWorldState::end(TimeoutMessage why) {
  {
    const std::lock_guard lock(mutex_);
    if (!ended()) why_ = std::move(why);
    ended_.store(true, std::memory_order_seq_cst);
    changed_.notify_all();
  }
  for (int rank = 0; rank < size_; ++rank) notifier(rank).notify();
  wait_until_nobody_is_busy();
}

void ThreadWorldState::throw_end(const TimeoutMessage& own) {
  wait_until_nobody_is_busy();
  TimeoutMessage why;
  {
    const std::lock_guard lock(mutex_);
    why = why_;
  }
  const bool out_of_time = !why.missing.empty();
  throw_timeout(out_of_time && !own.missing.empty() ? own : why);
}

// Members create their groups in the same order. So if another member of this group waits for a different group that
// includes this rank, neither group can ever be completed.
void ThreadWorldState::look_for_disagreement(int rank, PendingGroup& pending) {
  for (const int other : pending.ranks) {
    const auto& there = waits_in_[other];
    if (other == rank || there == nullptr || there.get() == &pending || there->group != nullptr) continue;
    if (std::find(there->ranks.begin(), there->ranks.end(), rank) == there->ranks.end()) continue;
    pending.disagreement = fmt::format("ranks do not agree on a group: rank {} asks for {}, rank {} for {}", other,
                                       list_ranks(there->ranks), rank, list_ranks(pending.ranks));
    there->disagreement = pending.disagreement;
    changed_.notify_all();
    return;
  }
}

std::shared_ptr<ThreadWorldState::PendingGroup> ThreadWorldState::join(int rank, std::span<const int> ranks,
                                                                       const GroupOptions& options) {
  const auto is_this = [&](const auto& p) {
    return std::equal(p->ranks.begin(), p->ranks.end(), ranks.begin(), ranks.end());
  };
  auto found = std::find_if(pending_.begin(), pending_.end(), is_this);
  if (found == pending_.end()) {
    auto fresh = std::make_shared<PendingGroup>();
    fresh->ranks.assign(ranks.begin(), ranks.end());
    fresh->arrivals.assign(ranks.size(), Arrival::absent);
    found = pending_.insert(pending_.end(), std::move(fresh));
  }
  const auto pending = *found;
  pending->options.collectives = std::max(pending->options.collectives, options.collectives);
  pending->options.messages = std::max(pending->options.messages, options.messages);
  pending->arrivals[std::find(ranks.begin(), ranks.end(), rank) - ranks.begin()] = Arrival::arrived;
  if (++pending->count == ranks.size()) {
    pending->group = std::make_shared<ThreadGroup>(pending->ranks, pending->options);
    pending_.erase(found);
    changed_.notify_all();
  } else {
    look_for_disagreement(rank, *pending);
  }
  return pending;
}

std::shared_ptr<ThreadGroup> ThreadWorldState::make_group(int rank, std::span<const int> ranks,
                                                          const GroupOptions& options) {
  base::Patience patience(time_limit_);
  std::unique_lock lock(mutex_);
  const auto pending = join(rank, ranks, options);
  waits_in_[rank] = pending;
  const auto over = [&] { return pending->group != nullptr || !pending->disagreement.empty() || ended(); };
  bool in_time = over();
  while (!in_time && !patience.is_over()) in_time = changed_.wait_until(lock, patience.slice_end(), over);
  waits_in_[rank] = nullptr;
  if (pending->group != nullptr) return pending->group;
  if (!pending->disagreement.empty()) throw base::UserError("comm", "{}", pending->disagreement);
  std::vector<int> members(ranks.size());
  std::iota(members.begin(), members.end(), 0);
  const TimeoutMessage why =
      timeout_message("making the group of " + list_ranks(ranks), time_limit_, ranks, members, pending->arrivals);
  lock.unlock();
  if (!in_time) end(why);
  throw_end(why);
}

}  // namespace kintsugi::comm
