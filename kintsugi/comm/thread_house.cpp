#include "kintsugi/comm/thread_house.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "kintsugi/base/error.h"
#include "kintsugi/base/processor.h"

namespace kintsugi::comm {

ThreadGroup::ThreadGroup(std::vector<int> world_ranks)
    : ranks(std::move(world_ranks)), collectives(static_cast<int>(ranks.size()), kCollectives) {
  messages_.reserve(ranks.size() * ranks.size());
  for (size_t from = 0; from < ranks.size(); ++from) {
    for (size_t to = 0; to < ranks.size(); ++to) messages_.emplace_back(2, from == to ? 0 : kMessages);
  }
}

ThreadHouse::ThreadHouse(int size, const WorldOptions& options)
    : size_(size),
      time_limit_(options.time_limit),
      cores_to_spare_(size <= base::usable_cores()),
      seats_(new Seat[size]),
      place_(size) {}

void ThreadHouse::ring(std::span<const int> ranks) {
  for (const int rank : ranks) bell(rank).ring();
}

bool ThreadHouse::lock(int rank) {
  seats_[rank].busy.store(true, std::memory_order_seq_cst);
  if (!ended()) return true;
  unlock(rank);
  return false;
}

// A thread that is busy saw no end before it began, and one that begins later sees it.
void ThreadHouse::drain() {
  for (int rank = 0; rank < size_; ++rank) {
    while (seats_[rank].busy.load(std::memory_order_seq_cst)) std::this_thread::yield();
  }
}

void ThreadHouse::end(Late why) {
  {
    const std::lock_guard lock(mutex_);
    if (!ended()) why_ = std::move(why);
    ended_.store(true, std::memory_order_seq_cst);
    met_.notify_all();
  }
  for (int rank = 0; rank < size_; ++rank) bell(rank).ring();
  drain();
}

void ThreadHouse::throw_end(const Late& own) {
  drain();
  Late why;
  {
    const std::lock_guard lock(mutex_);
    why = why_;
  }
  const bool out_of_time = !why.missing.empty();
  throw_late(out_of_time && !own.missing.empty() ? own : why);
}

// Two ranks that wait for each other in different groups of both never meet: members ask in the same order.
void ThreadHouse::look_for_quarrel(int rank, Meeting& meeting) {
  for (const int other : meeting.ranks) {
    const auto& there = place_[other];
    if (other == rank || there == nullptr || there.get() == &meeting || there->group != nullptr) continue;
    if (std::find(there->ranks.begin(), there->ranks.end(), rank) == there->ranks.end()) continue;
    meeting.quarrel = fmt::format("ranks do not agree on a group: rank {} asks for {}, rank {} for {}", other,
                                  list_ranks(there->ranks), rank, list_ranks(meeting.ranks));
    there->quarrel = meeting.quarrel;
    met_.notify_all();
    return;
  }
}

std::shared_ptr<ThreadHouse::Meeting> ThreadHouse::join(int rank, std::span<const int> ranks) {
  const auto is_this = [&](const auto& m) {
    return std::equal(m->ranks.begin(), m->ranks.end(), ranks.begin(), ranks.end());
  };
  auto found = std::find_if(meetings_.begin(), meetings_.end(), is_this);
  if (found == meetings_.end()) {
    auto meeting = std::make_shared<Meeting>();
    meeting->ranks.assign(ranks.begin(), ranks.end());
    meeting->came.assign(ranks.size(), Came::no);
    found = meetings_.insert(meetings_.end(), std::move(meeting));
  }
  const auto meeting = *found;
  meeting->came[std::find(ranks.begin(), ranks.end(), rank) - ranks.begin()] = Came::yes;
  if (++meeting->count == ranks.size()) {
    meeting->group = std::make_shared<ThreadGroup>(meeting->ranks);
    meetings_.erase(found);
    met_.notify_all();
  } else {
    look_for_quarrel(rank, *meeting);
  }
  return meeting;
}

std::shared_ptr<ThreadGroup> ThreadHouse::meet(int rank, std::span<const int> ranks) {
  const auto limit = std::chrono::steady_clock::now() + time_limit_;
  std::unique_lock lock(mutex_);
  const auto meeting = join(rank, ranks);
  place_[rank] = meeting;
  const auto over = [&] { return meeting->group != nullptr || !meeting->quarrel.empty() || ended(); };
  const bool in_time = met_.wait_until(lock, limit, over);
  place_[rank] = nullptr;
  if (meeting->group != nullptr) return meeting->group;
  if (!meeting->quarrel.empty()) throw base::UserError("comm", "{}", meeting->quarrel);
  std::vector<int> members(ranks.size());
  std::iota(members.begin(), members.end(), 0);
  const Late why = late("the meeting of " + list_ranks(ranks), time_limit_, ranks, members, meeting->came);
  lock.unlock();
  if (!in_time) end(why);
  throw_end(why);
}

}  // namespace kintsugi::comm
