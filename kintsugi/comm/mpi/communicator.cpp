#include "kintsugi/comm/mpi/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kintsugi/comm/mpi/check.h"

namespace kintsugi::comm {
namespace {
constexpr int kMessageTag = 100;  // lanes have theirs from 0
}

MpiCommunicator::MpiCommunicator(std::shared_ptr<MpiProcess> process, MPI_Comm comm, std::vector<int> world_ranks,
                                 std::vector<int> rows)
    : process_(std::move(process)),
      comm_(comm),
      ranks_(std::move(world_ranks)),
      rows_(std::move(rows)),
      sent_(ranks_.size()),
      received_(ranks_.size()) {
  check_mpi(MPI_Comm_rank(comm_, &rank_));
  for (int lane = 0; lane < kLanes; ++lane) lanes_.emplace_back(comm_, rank_, size(), lane);
  process_->communicators.push_back(this);
}

// What is open holds buffers that may be gone now, and the others wait for it: the run cannot go on.
MpiCommunicator::~MpiCommunicator() {
  std::erase(process_->communicators, this);
  process_->board->give_row(process_->seat(), rows_[rank_]);
  for (; oldest_ <= made_; ++oldest_) process_->failed |= !open(oldest_).done;
  if (!process_->failed && !process_->board->ended()) MPI_Comm_free(&comm_);
}

Event MpiCommunicator::enqueue(const Call& call) {
  if (made_ - oldest_ + 1 == open_.size()) finish_oldest();
  Open& o = open(++made_);
  o.call = call;
  o.done = false;
  if (is_message(call)) {
    post_message(o);
  } else {
    o.number = collectives_++;
    o.segments = num_segments(call, size());
    o.next = 0;
    process_->board->publish(process_->seat(), rows_[rank_], call);
    advance_collective();
  }
  return {made_};
}

// A send ends when it is being received, as between threads.
void MpiCommunicator::post_message(Open& o) {
  const bool send = o.call.kind == Kind::send;
  o.number = (send ? sent_ : received_)[o.call.root]++;
  o.num_requests = 0;
  size_t at = 0;
  do {
    base::require(o.num_requests < static_cast<int>(kPieces), "comm", "{}: too long for one message", o.call.text());
    const int bytes = static_cast<int>(std::min(kPiece, o.call.bytes - at));
    MPI_Request& request = o.requests[o.num_requests++];
    if (send) {
      check_mpi(MPI_Issend(o.call.in + at, bytes, MPI_BYTE, o.call.root, kMessageTag, comm_, &request));
    } else {
      check_mpi(MPI_Irecv(o.call.out + at, bytes, MPI_BYTE, o.call.root, kMessageTag, comm_, &request));
    }
    at += bytes;
  } while (at < o.call.bytes);
  process_->board->publish_message(process_->seat(), rows_[rank_], o.call.root, send);
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
    throw base::InternalError("comm", "rank {} sends more than the {} bytes that rank {} receives", ranks_[o.call.root],
                              o.call.bytes, ranks_[rank_]);
  }
  check_mpi(result);
  if (done == 0) return false;
  if (o.call.kind == Kind::receive && bytes != o.call.bytes) {
    throw base::InternalError("comm", "rank {} calls send of {} bytes, rank {} receive of {} bytes",
                              ranks_[o.call.root], bytes, ranks_[rank_], o.call.bytes);
  }
  o.done = true;
  return true;
}

// The oldest collective that is not done; segments are given to lanes in turn, so that all ranks give them alike.
bool MpiCommunicator::advance_collective() {
  while (active_ <= made_ && (is_message(open(active_).call) || open(active_).done)) ++active_;
  if (active_ > made_) return false;
  Open& o = open(active_);
  bool any = false;
  for (Lane& lane : lanes_) any |= lane.advance();
  while (o.next < o.segments && !lanes_[o.next % kLanes].is_busy()) {
    if (o.next == 0 && !mismatch(o).empty()) return any;  // its wait says so
    lanes_[o.next % kLanes].start(o.call, o.next);
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
    if (is_message(o.call) && !o.done) any |= advance_message(o);
  }
  return advance_collective() || any;
}

bool MpiCommunicator::advance_all() {
  bool any = false;
  for (MpiCommunicator* each : process_->communicators) {
    if (each->oldest_ > each->made_) continue;
    process_->board->look(process_->seat(), each->rows_[each->rank_]);
    any |= each->advance();
  }
  return any;
}

void MpiCommunicator::progress() {
  advance_all();
}

// Those of this node that have come; MPI itself would move the wrong bytes, or wait forever.
std::string MpiCommunicator::mismatch(const Open& o) const {
  int first = -1;
  Call call;
  for (int m = 0; m < size(); ++m) {
    const int seat = process_->seat(ranks_[m]);
    Call other = o.call;
    if (m != rank_ && (seat < 0 || !process_->board->call(seat, rows_[m], o.number, other))) continue;
    if (first < 0) {
      first = m;
      call = other;
    } else if (!call.agrees_with(other)) {
      return fmt::format("rank {} calls {}, rank {} {}", ranks_[first], call.text_in_full(), ranks_[m],
                         other.text_in_full());
    }
  }
  return "";
}

Late MpiCommunicator::late_for(const Open& o) const {
  std::vector<int> members(ranks_.size());
  std::iota(members.begin(), members.end(), 0);
  const bool message = is_message(o.call), send = o.call.kind == Kind::send;
  if (message) members = send ? std::vector<int>{rank_, o.call.root} : std::vector<int>{o.call.root, rank_};
  const double long_ago = std::chrono::duration<double>(process_->time_limit).count() / 2;
  std::vector<Came> came;
  for (const int m : members) {
    const int seat = process_->seat(ranks_[m]);
    if (m == rank_) {
      came.push_back(Came::yes);
      continue;
    }
    if (seat < 0) {
      came.push_back(message ? process_->far_message(ranks_[m], rows_[m], rank_, !send, o.number)
                             : process_->far_collective(ranks_[m], rows_[m], o.number));
      continue;
    }
    const Board& board = *process_->board;
    const bool here =
        (message ? board.messages(seat, rows_[m], rank_, !send) : board.collectives(seat, rows_[m])) > o.number;
    const bool looks = board.seconds_since_look(seat, rows_[m]) < long_ago;
    came.push_back(!here ? Came::no : looks ? Came::yes : Came::stuck);
  }
  return late(describe(o.call, rank_, ranks_), process_->time_limit, ranks_, members, came);
}

void MpiCommunicator::require_match(const Open& o) const {
  if (is_message(o.call)) return;
  const std::string wrong = mismatch(o);
  base::require(wrong.empty(), "comm", "{}", wrong);
}

void MpiCommunicator::finish_oldest() {
  Open& o = open(oldest_);
  Patience patience(process_->time_limit);
  while (!o.done) {
    const bool any = advance_all();
    if (o.done) break;
    if (any) {
      patience.something_happened();
      continue;
    }
    require_match(o);
    if (process_->board->ended()) process_->throw_end(late_for(o));
    if (patience.is_over()) {
      process_->ask_far_ranks(ranks_);
      const Late why = late_for(o);
      process_->run_out_of_time(why);
      process_->throw_end(why);
    }
    patience.idle();
  }
  require_match(o);  // where nobody is done before all have come, all know by now
  ++oldest_;
}

void MpiCommunicator::wait(Event event) {
  base::require(event.number <= made_, "comm", "a wait for event {} of {}", event.number, made_);
  while (oldest_ <= event.number) finish_oldest();
}

}  // namespace kintsugi::comm
