#include "kintsugi/comm/mpi/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kintsugi/comm/mpi/check.h"

namespace kintsugi::comm {

MpiCommunicator::MpiCommunicator(std::shared_ptr<MpiProcess> process, std::vector<int> world_ranks,
                                 std::vector<TableRow> rows, int block, const GroupOptions& options)
    : process_(std::move(process)),
      ranks_(std::move(world_ranks)),
      rows_(std::move(rows)),
      block_(block),
      options_(options),
      comm_(process_->comms.take(ranks_, block_, process_->time_limit)),
      sent_(ranks_.size()),
      received_(ranks_.size()),
      open_(options.collectives + options.messages) {
  check_mpi(MPI_Comm_rank(comm_, &rank_));
  for (int lane = 0; lane < kLanes && options.collectives > 0; ++lane)
    lanes_.emplace_back(comm_, rank_, size(), block_ * GroupComms::kTags + lane);
  process_->num_communicators += 1;
  process_->busy.reserve(process_->num_communicators);  // avoids allocations later
}

// The owner may already have freed the buffers of operations in flight, and other ranks wait for them: the run cannot
// continue.
MpiCommunicator::~MpiCommunicator() {
  process_->num_communicators -= 1;
  std::erase(process_->busy, this);
  process_->progress->give_row(rows_[rank_].index);
  process_->comms.give(ranks_, block_);
  for (; oldest_ <= made_; ++oldest_) process_->failed |= !open(oldest_).done;
}

Event MpiCommunicator::enqueue(std::span<const Operation> operations) {
  check_room(operations, options_);
  while (made_ - oldest_ + 1 + operations.size() > open_.size()) finish_oldest();
  for (const Operation& operation : operations) start(operation);
  return {made_};
}

void MpiCommunicator::start(const Operation& operation) {
  if (oldest_ > made_) process_->busy.push_back(this);
  Open& o = open(++made_);
  o.operation = operation;
  o.done = false;
  if (operation.is_message()) {
    post_message(o);
  } else {
    o.number = collectives_++;
    o.segments = num_segments(operation, size());
    o.next = 0;
    process_->progress->publish(rows_[rank_].index, operation);
    advance_collective();
  }
}

// Synchronous: a send completes once its receive has started, as between threads.
void MpiCommunicator::post_message(Open& o) {
  const int tag = block_ * GroupComms::kTags + kLanes;
  const bool send = o.operation.kind == Kind::send;
  o.number = (send ? sent_ : received_)[o.operation.root]++;
  o.num_requests = 0;
  size_t at = 0;
  do {
    base::require(o.num_requests < static_cast<int>(kPieces), "comm", "{}: too long for one message",
                  o.operation.text());
    const int bytes = static_cast<int>(std::min(kPiece, o.operation.bytes - at));
    MPI_Request& request = o.requests[o.num_requests++];
    if (send) {
      check_mpi(MPI_Issend(o.operation.in + at, bytes, MPI_BYTE, o.operation.root, tag, comm_, &request));
    } else {
      check_mpi(MPI_Irecv(o.operation.out + at, bytes, MPI_BYTE, o.operation.root, tag, comm_, &request));
    }
    at += bytes;
  } while (at < o.operation.bytes);
  process_->progress->publish_message(rows_[rank_].index, o.operation.root, send);
}

bool MpiCommunicator::advance_message(Open& o) {
  MPI_Status statuses[kPieces];
  int done = 0;
  const int result = MPI_Testall(o.num_requests, o.requests, &done, statuses);
  size_t bytes = 0;
  bool too_long = false;
  for (int i = 0; i < o.num_requests && (done != 0 || result == MPI_ERR_IN_STATUS); ++i) {
    int count = 0, kind = MPI_SUCCESS;
    if (result == MPI_ERR_IN_STATUS && statuses[i].MPI_ERROR != MPI_ERR_PENDING) {
      check_mpi(MPI_Error_class(statuses[i].MPI_ERROR, &kind));
    }
    too_long |= kind == MPI_ERR_TRUNCATE;
    if (MPI_Get_count(&statuses[i], MPI_BYTE, &count) == MPI_SUCCESS && count > 0) bytes += count;
  }
  if (too_long) {
    throw base::InternalError("comm", "rank {} sends more than the {} bytes that rank {} receives",
                              ranks_[o.operation.root], o.operation.bytes, ranks_[rank_]);
  }
  check_mpi(result);
  if (done == 0) return false;
  if (o.operation.kind == Kind::receive && bytes != o.operation.bytes) {
    throw base::InternalError("comm", "rank {} calls send of {} bytes, rank {} receive of {} bytes",
                              ranks_[o.operation.root], bytes, ranks_[rank_], o.operation.bytes);
  }
  o.done = true;
  return true;
}

// Advances the oldest incomplete collective. Segments are assigned to lanes round-robin, so that all ranks assign a
// segment to the same lane.
bool MpiCommunicator::advance_collective() {
  while (active_ <= made_ && (open(active_).operation.is_message() || open(active_).done)) ++active_;
  if (active_ > made_) return false;
  Open& o = open(active_);
  bool any = false;
  for (Lane& lane : lanes_) any |= lane.advance();
  while (o.next < o.segments && !lanes_[o.next % kLanes].is_busy()) {
    if (o.next == 0 && !mismatch(o).empty()) return any;  // its wait will throw
    lanes_[o.next % kLanes].start(o.operation, o.next);
    ++o.next;
    any = true;
  }
  if (o.next == o.segments && std::none_of(lanes_.begin(), lanes_.end(), [](const Lane& l) { return l.is_busy(); })) {
    o.done = true;
    any = true;
  }
  return any;
}

bool MpiCommunicator::advance() {
  bool any = false;
  for (uint64_t event = oldest_; event <= made_; ++event) {
    Open& o = open(event);
    if (o.operation.is_message() && !o.done) any |= advance_message(o);
  }
  return advance_collective() || any;
}

bool MpiCommunicator::advance_all() {
  bool any = false;
  for (MpiCommunicator* each : process_->busy) {
    process_->progress->mark_poll(each->rows_[each->rank_].index);
    any |= each->advance();
  }
  return any;
}

void MpiCommunicator::progress() {
  advance_all();
}

// Checks the members on this node that have arrived; MPI itself would move the wrong bytes or hang.
std::string MpiCommunicator::mismatch(const Open& o) const {
  int first = -1;
  Operation operation;
  for (int m = 0; m < size(); ++m) {
    const int local_rank = process_->local_rank(ranks_[m]);
    Operation other = o.operation;
    const TableRow& row = rows_[m];
    if (m != rank_ &&
        (local_rank < 0 || !process_->progress->collective(local_rank, row.index, row.generation, o.number, other)))
      continue;
    if (first < 0) {
      first = m;
      operation = other;
    } else if (!operation.agrees_with(other)) {
      return fmt::format("rank {} calls {}, rank {} {}", ranks_[first], operation.text_in_full(), ranks_[m],
                         other.text_in_full());
    }
  }
  return "";
}

TimeoutMessage MpiCommunicator::timeout_of(const Open& o) const {
  std::vector<int> members(ranks_.size());
  std::iota(members.begin(), members.end(), 0);
  const bool message = o.operation.is_message(), send = o.operation.kind == Kind::send;
  if (message) members = send ? std::vector<int>{rank_, o.operation.root} : std::vector<int>{o.operation.root, rank_};
  const double long_ago = std::chrono::duration<double>(process_->time_limit).count() / 2;
  std::vector<Arrival> arrivals;
  for (const int m : members) {
    const int local_rank = process_->local_rank(ranks_[m]);
    if (m == rank_) {
      arrivals.push_back(Arrival::arrived);
      continue;
    }
    if (local_rank < 0) {
      arrivals.push_back(message ? process_->message_elsewhere(ranks_[m], rows_[m].index, rank_, !send, o.number)
                                 : process_->collective_elsewhere(ranks_[m], rows_[m].index, o.number));
      continue;
    }
    const ProgressTable& progress = *process_->progress;
    const int row = rows_[m].index;
    if (!progress.is_of(local_rank, row, rows_[m].generation)) {
      arrivals.push_back(Arrival::arrived);  // and has destroyed the communicator since
      continue;
    }
    const bool here =
        (message ? progress.messages(local_rank, row, rank_, !send) : progress.collectives(local_rank, row)) > o.number;
    const bool polls = progress.seconds_since_poll(local_rank, row) < long_ago;
    arrivals.push_back(!here ? Arrival::absent : polls ? Arrival::arrived : Arrival::stuck);
  }
  return timeout_message(describe(o.operation, rank_, ranks_), process_->time_limit, ranks_, members, arrivals);
}

void MpiCommunicator::require_match(const Open& o) const {
  if (o.operation.is_message()) return;
  const std::string wrong = mismatch(o);
  base::require(wrong.empty(), "comm", "{}", wrong);
}

void MpiCommunicator::finish_oldest() {
  Open& o = open(oldest_);
  Backoff backoff(process_->time_limit);
  while (!o.done) {
    const bool any = advance_all();
    if (o.done) break;
    if (any) {
      backoff.reset();
      continue;
    }
    require_match(o);
    const bool out_of_time = backoff.is_over();
    if (process_->progress->ended()) process_->throw_end(timeout_of(o), backoff.waited());
    if (out_of_time) {
      process_->read_other_nodes(ranks_);
      const TimeoutMessage why = timeout_of(o);
      process_->run_out_of_time(why);
      process_->throw_end(why, backoff.waited());
    }
    backoff.pause();
  }
  require_match(o);  // a collective completes only after all have arrived, so all are known
  if (++oldest_ > made_) std::erase(process_->busy, this);
}

void MpiCommunicator::wait(Event event) {
  base::require(event.number <= made_, "comm", "a wait for event {} of {}", event.number, made_);
  while (oldest_ <= event.number) finish_oldest();
}

}  // namespace kintsugi::comm
