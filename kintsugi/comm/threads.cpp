// Ranks that are threads of one process. Waiting threads move the bytes: see OperationQueue.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "kintsugi/base/error.h"
#include "kintsugi/base/patience.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/comm/limits.h"
#include "kintsugi/comm/operation.h"
#include "kintsugi/comm/thread_world_state.h"

namespace kintsugi::comm {
namespace {

constexpr Backend kThreads = {.name = "threads", .ranks = RankKind::thread, .adds_in_rank_order = true};

class ThreadCommunicator;

// One rank; it and its communicators are used by one thread at a time.
struct ThreadRank {
  std::shared_ptr<ThreadWorldState> world;
  int rank = 0;
  size_t num_communicators = 0;
  std::vector<ThreadCommunicator*> busy = {};  // those with operations in flight
};

class ThreadCommunicator : public CheckedCommunicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadRank> self, std::shared_ptr<ThreadGroup> group)
      : self_(std::move(self)), world_(*self_->world), group_(std::move(group)) {
    rank_ = static_cast<int>(std::find(ranks().begin(), ranks().end(), self_->rank) - ranks().begin());
    open_.resize(group_->options.collectives + group_->options.messages);
    sent_.resize(ranks().size());
    received_.resize(ranks().size());
    self_->num_communicators += 1;
    self_->busy.reserve(self_->num_communicators);  // avoids allocations later
  }
  ~ThreadCommunicator() override;

  const Backend& backend() const override { return kThreads; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks().size()); }
  void wait(Event event) override;
  void progress() override;

 protected:
  Event enqueue(std::span<const Operation> operations) override;

 private:
  struct Open {
    OperationQueue* queue = nullptr;
    uint64_t number = 0;  // in the queue
    int member = 0;       // of the queue; for a message, 0 sends and 1 receives
    Operation operation;
  };

  const std::vector<int>& ranks() const { return group_->ranks; }
  Open& open(uint64_t event) { return open_[event % open_.size()]; }
  Open next(const Operation& operation);  // the next of its queue
  void wait_for_entry(const Open& open);
  bool move_chunk_here();
  bool move_chunk();
  void notify_members(const Open& open);
  void leave(Open& open);
  void finish_oldest();
  TimeoutMessage timeout_of(const Open& open);
  // Moves chunks until over() is true. Throws when the time limit has passed or the world has ended.
  template <typename Over>
  void wait_until(const Open& awaited, Over&& over);

  const std::shared_ptr<ThreadRank> self_;
  ThreadWorldState& world_;
  const std::shared_ptr<ThreadGroup> group_;
  int rank_ = 0;
  uint64_t collectives_ = 0;               // number enqueued so far, like the next two
  std::vector<uint64_t> sent_, received_;  // [member]
  std::vector<Open> open_;                 // events oldest_ to made_
  uint64_t oldest_ = 1, made_ = 0;
};

// The owner may already have freed the buffers of operations in flight: they can never complete, so the world ends.
ThreadCommunicator::~ThreadCommunicator() {
  for (; oldest_ <= made_; ++oldest_) {
    Open& o = open(oldest_);
    if (o.queue->state(o.number) == OperationQueue::State::finished) {
      leave(o);
    } else {
      world_.end_with_text([&] {
        return fmt::format("rank {} ended: it left before its {} was done", self_->rank,
                           describe(o.operation, rank_, ranks()));
      });
    }
  }
  self_->num_communicators -= 1;
  std::erase(self_->busy, this);
}

ThreadCommunicator::Open ThreadCommunicator::next(const Operation& operation) {
  if (operation.kind == Kind::send)
    return {&group_->messages(rank_, operation.root), sent_[operation.root]++, 0, operation};
  if (operation.kind == Kind::receive)
    return {&group_->messages(operation.root, rank_), received_[operation.root]++, 1, operation};
  return {&group_->collectives, collectives_++, rank_, operation};
}

// Acquires entries for all operations first: once one is posted, nothing may block until the last is posted.
Event ThreadCommunicator::enqueue(std::span<const Operation> operations) {
  check_room(operations, group_->options);
  while (made_ - oldest_ + 1 + operations.size() > open_.size()) finish_oldest();
  std::array<Open, kMaxExchange> fresh;
  for (size_t i = 0; i < operations.size(); ++i) {
    fresh[i] = next(operations[i]);
    wait_for_entry(fresh[i]);
  }
  if (oldest_ > made_) self_->busy.push_back(this);
  for (const Open& o : std::span(fresh).first(operations.size())) {
    open(++made_) = o;
    if (o.queue->post(o.number, o.member, o.operation)) notify_members(o);
  }
  return {made_};
}

// A member leaves its previous use of the entry when it waits for its event; if that member is this rank, do it here.
void ThreadCommunicator::wait_for_entry(const Open& o) {
  if (o.queue->is_free(o.number)) return;
  const auto held = [&](const Open& mine) {
    return mine.queue == o.queue && mine.number + o.queue->entries() == o.number;
  };
  for (uint64_t event = oldest_; event <= made_; ++event) {
    if (!held(open(event))) continue;
    while (oldest_ <= event) finish_oldest();
  }
  group_->blocked.fetch_add(1, std::memory_order_seq_cst);
  wait_until(o, [&] { return o.queue->is_free(o.number); });
  group_->blocked.fetch_sub(1, std::memory_order_seq_cst);
}

void ThreadCommunicator::notify_members(const Open& o) {
  if (o.queue == &group_->collectives) {
    world_.notify(ranks());
  } else {
    world_.notifier(ranks()[o.operation.root]).notify();
  }
}

void ThreadCommunicator::leave(Open& o) {
  if (o.queue->leave(o.number) && group_->blocked.load(std::memory_order_seq_cst) > 0) world_.notify(ranks());
}

// Moves a chunk of the oldest operation enqueued here that has one. Returns false if none has.
bool ThreadCommunicator::move_chunk_here() {
  for (uint64_t event = oldest_; event <= made_; ++event) {
    const Open& o = open(event);
    if (!o.queue->has_work(o.number)) continue;
    if (!world_.lock(self_->rank)) return false;
    const bool finished = o.queue->move_chunk(o.number);
    world_.unlock(self_->rank);
    if (finished) notify_members(o);
    return true;
  }
  return false;
}

bool ThreadCommunicator::move_chunk() {
  if (move_chunk_here()) return true;
  for (ThreadCommunicator* other : self_->busy) {
    if (other != this && other->move_chunk_here()) return true;
  }
  return false;
}

void ThreadCommunicator::progress() {
  while (move_chunk()) {
  }
}

TimeoutMessage ThreadCommunicator::timeout_of(const Open& o) {
  std::vector<int> members(ranks().size());
  std::iota(members.begin(), members.end(), 0);
  if (o.queue != &group_->collectives) {
    members = o.member == 0 ? std::vector<int>{rank_, o.operation.root} : std::vector<int>{o.operation.root, rank_};
  }
  std::vector<Arrival> arrivals;
  for (int m = 0; m < static_cast<int>(members.size()); ++m) {
    const bool here =
        m == o.member || o.queue->has_posted(o.number, m);  // counts as arrived even while waiting for an entry
    arrivals.push_back(here ? Arrival::arrived : Arrival::absent);
  }
  return timeout_message(describe(o.operation, rank_, ranks()), world_.time_limit(), ranks(), members, arrivals);
}

template <typename Over>
void ThreadCommunicator::wait_until(const Open& awaited, Over&& over) {
  base::Patience patience(world_.time_limit());
  Notifier& notifier = world_.notifier(self_->rank);
  for (;;) {
    const uint64_t seen = notifier.count();
    if (over()) return;
    if (world_.ended()) world_.throw_end(timeout_of(awaited));
    if (move_chunk()) continue;
    if (patience.is_over()) {
      const TimeoutMessage why = timeout_of(awaited);
      world_.end(why);
      world_.throw_end(why);
    }
    notifier.wait(seen, patience.slice_end(), world_.cores_to_spare());
  }
}

void ThreadCommunicator::finish_oldest() {
  Open& o = open(oldest_);
  wait_until(o, [&] { return o.queue->state(o.number) >= OperationQueue::State::finished; });
  if (o.queue->state(o.number) == OperationQueue::State::mismatched) {
    const bool message = o.queue != &group_->collectives;
    const int from = o.member == 0 ? rank_ : o.operation.root, to = o.member == 0 ? o.operation.root : rank_;
    throw base::InternalError("comm", "{}",
                              o.queue->mismatch(o.number, message ? std::vector{ranks()[from], ranks()[to]} : ranks()));
  }
  leave(o);
  if (++oldest_ > made_) std::erase(self_->busy, this);
}

void ThreadCommunicator::wait(Event event) {
  base::require(event.number <= made_, "comm", "a wait for event {} of {}", event.number, made_);
  while (oldest_ <= event.number) finish_oldest();
}

class ThreadWorld : public World {
 public:
  explicit ThreadWorld(std::shared_ptr<ThreadRank> self) : self_(std::move(self)) {}

  const Backend& backend() const override { return kThreads; }
  int rank() const override { return self_->rank; }
  int size() const override { return self_->world->size(); }
  std::unique_ptr<Communicator> group(std::span<const int> ranks, const GroupOptions& options) override {
    check_group(ranks, rank(), size());
    return std::make_unique<ThreadCommunicator>(self_, self_->world->make_group(rank(), ranks, options));
  }
  void abort(const std::string& reason) override {
    self_->world->end_with_text([&] { return fmt::format("rank {} ended: {}", rank(), reason); });
  }

 private:
  const std::shared_ptr<ThreadRank> self_;
};

}  // namespace

std::vector<std::unique_ptr<World>> thread_worlds(int ranks, const WorldOptions& options) {
  require_threads(ranks);
  check_options(options);
  const auto world = std::make_shared<ThreadWorldState>(ranks, options);
  std::vector<std::unique_ptr<World>> worlds;
  for (int rank = 0; rank < ranks; ++rank) {
    worlds.push_back(
        std::make_unique<ThreadWorld>(std::make_shared<ThreadRank>(ThreadRank{.world = world, .rank = rank})));
  }
  return worlds;
}

}  // namespace kintsugi::comm
