// Ranks that are threads of one process. The bytes are moved inside wait(), by the threads that wait: see SlotRing.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/call.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/comm/thread_house.h"

namespace kintsugi::comm {
namespace {

class ThreadCommunicator;

// One rank; used by one thread at a time, with all its communicators.
struct ThreadRank {
  std::shared_ptr<ThreadHouse> house;
  int rank = 0;
  std::vector<ThreadCommunicator*> communicators;
};

class ThreadCommunicator : public Calls {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadRank> self, std::shared_ptr<ThreadGroup> group)
      : self_(std::move(self)), house_(*self_->house), group_(std::move(group)) {
    rank_ = static_cast<int>(std::find(ranks().begin(), ranks().end(), self_->rank) - ranks().begin());
    sent_.resize(ranks().size());
    received_.resize(ranks().size());
    self_->communicators.push_back(this);
  }
  ~ThreadCommunicator() override;

  std::string_view backend() const override { return "threads"; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks().size()); }
  void wait(Event event) override;
  void progress() override;

 protected:
  Event enqueue(const Call& call) override;

 private:
  struct Open {
    SlotRing* ring = nullptr;
    uint64_t operation = 0;
    int member = 0;
    Call call;
  };

  const std::vector<int>& ranks() const { return group_->ranks; }
  Open& open(uint64_t event) { return open_[event % open_.size()]; }
  Open place(const Call& call);
  bool help_here();
  bool help();
  void tell(const Open& open);  // its other members that something changed
  void leave(Open& open);
  void finish_oldest();
  Late late_for(const Open& open);
  // Until over(), helping; throws when that is too late, or when the world has ended.
  template <typename Over>
  void wait_until(const Open& awaited, Over&& over);

  const std::shared_ptr<ThreadRank> self_;
  ThreadHouse& house_;
  const std::shared_ptr<ThreadGroup> group_;
  int rank_ = 0;
  uint64_t collectives_ = 0;                          // enqueued so far, as the next two
  std::vector<uint64_t> sent_, received_;             // [member]
  std::array<Open, ThreadGroup::kCollectives> open_;  // events oldest_ to made_
  uint64_t oldest_ = 1, made_ = 0;
};

// The caller's buffers may be gone when this is: what is open then can never be done.
ThreadCommunicator::~ThreadCommunicator() {
  for (; oldest_ <= made_; ++oldest_) {
    Open& o = open(oldest_);
    if (o.ring->state(o.operation) == SlotRing::State::finished) {
      leave(o);
    } else {
      house_.end_saying([&] {
        return fmt::format("rank {} ended: it left before its {} was done", self_->rank,
                           describe(o.call, rank_, ranks()));
      });
    }
  }
  std::erase(self_->communicators, this);
}

ThreadCommunicator::Open ThreadCommunicator::place(const Call& call) {
  if (call.kind == Kind::send) return {&group_->messages(rank_, call.root), sent_[call.root]++, 0, call};
  if (call.kind == Kind::receive) return {&group_->messages(call.root, rank_), received_[call.root]++, 1, call};
  return {&group_->collectives, collectives_++, rank_, call};
}

Event ThreadCommunicator::enqueue(const Call& call) {
  if (made_ - oldest_ + 1 == open_.size()) finish_oldest();
  const Open o = place(call);
  if (!o.ring->is_free(o.operation)) {
    group_->blocked.fetch_add(1, std::memory_order_seq_cst);
    wait_until(o, [&] { return o.ring->is_free(o.operation); });
    group_->blocked.fetch_sub(1, std::memory_order_seq_cst);
  }
  open(++made_) = o;
  if (o.ring->post(o.operation, o.member, call)) tell(o);
  return {made_};
}

void ThreadCommunicator::tell(const Open& o) {
  if (o.ring == &group_->collectives) {
    house_.ring(ranks());
  } else {
    house_.bell(ranks()[o.call.root]).ring();
  }
}

void ThreadCommunicator::leave(Open& o) {
  if (o.ring->leave(o.operation) && group_->blocked.load(std::memory_order_seq_cst) > 0) house_.ring(ranks());
}

// Moves one chunk of what is enqueued here, the oldest first.
bool ThreadCommunicator::help_here() {
  for (uint64_t event = oldest_; event <= made_; ++event) {
    const Open& o = open(event);
    if (!o.ring->has_work(o.operation)) continue;
    if (!house_.lock(self_->rank)) return false;
    const bool finished = o.ring->work(o.operation);
    house_.unlock(self_->rank);
    if (finished) tell(o);
    return true;
  }
  return false;
}

bool ThreadCommunicator::help() {
  if (help_here()) return true;
  for (ThreadCommunicator* other : self_->communicators) {
    if (other != this && other->help_here()) return true;
  }
  return false;
}

void ThreadCommunicator::progress() {
  while (help()) {
  }
}

Late ThreadCommunicator::late_for(const Open& o) {
  std::vector<int> members(ranks().size());
  std::iota(members.begin(), members.end(), 0);
  if (o.ring != &group_->collectives) {
    members = o.member == 0 ? std::vector<int>{rank_, o.call.root} : std::vector<int>{o.call.root, rank_};
  }
  std::vector<Came> came;
  for (int m = 0; m < static_cast<int>(members.size()); ++m) {
    const bool here = m == o.member || o.ring->has_posted(o.operation, m);  // even where it still waits for a slot
    came.push_back(here ? Came::yes : Came::no);
  }
  return late(describe(o.call, rank_, ranks()), house_.time_limit(), ranks(), members, came);
}

template <typename Over>
void ThreadCommunicator::wait_until(const Open& awaited, Over&& over) {
  const auto limit = std::chrono::steady_clock::now() + house_.time_limit();
  Bell& bell = house_.bell(self_->rank);
  for (;;) {
    const uint64_t rings = bell.rings();
    if (over()) return;
    if (house_.ended()) house_.throw_end(late_for(awaited));
    if (help()) continue;
    if (std::chrono::steady_clock::now() >= limit) {
      const Late why = late_for(awaited);
      house_.end(why);
      house_.throw_end(why);
    }
    bell.wait(rings, limit, house_.cores_to_spare());
  }
}

void ThreadCommunicator::finish_oldest() {
  Open& o = open(oldest_);
  wait_until(o, [&] { return o.ring->state(o.operation) >= SlotRing::State::finished; });
  if (o.ring->state(o.operation) == SlotRing::State::mismatched) {
    const bool message = o.ring != &group_->collectives;
    const int from = o.member == 0 ? rank_ : o.call.root, to = o.member == 0 ? o.call.root : rank_;
    throw base::InternalError(
        "comm", "{}", o.ring->mismatch(o.operation, message ? std::vector{ranks()[from], ranks()[to]} : ranks()));
  }
  leave(o);
  ++oldest_;
}

void ThreadCommunicator::wait(Event event) {
  base::require(event.number <= made_, "comm", "a wait for event {} of {}", event.number, made_);
  while (oldest_ <= event.number) finish_oldest();
}

class ThreadWorld : public World {
 public:
  explicit ThreadWorld(std::shared_ptr<ThreadRank> self) : self_(std::move(self)) {}

  std::string_view backend() const override { return "threads"; }
  int rank() const override { return self_->rank; }
  int size() const override { return self_->house->size(); }
  std::unique_ptr<Communicator> group(std::span<const int> ranks) override {
    check_group(ranks, rank(), size());
    return std::make_unique<ThreadCommunicator>(self_, self_->house->meet(rank(), ranks));
  }
  void abort(const std::string& reason) override {
    self_->house->end_saying([&] { return fmt::format("rank {} ended: {}", rank(), reason); });
  }

 private:
  const std::shared_ptr<ThreadRank> self_;
};

}  // namespace

std::vector<std::unique_ptr<World>> thread_worlds(int ranks, const WorldOptions& options) {
  if (ranks < 1) throw base::UserError("comm", "{} ranks; at least 1 is needed", ranks);
  check_options(options);
  const auto house = std::make_shared<ThreadHouse>(ranks, options);
  std::vector<std::unique_ptr<World>> worlds;
  for (int rank = 0; rank < ranks; ++rank) {
    worlds.push_back(std::make_unique<ThreadWorld>(std::make_shared<ThreadRank>(ThreadRank{house, rank, {}})));
  }
  return worlds;
}

}  // namespace kintsugi::comm
