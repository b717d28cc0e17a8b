// This process as a rank of MPI: the board of its node, and the ends that a run can have.
#pragma once

#include <mpi.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "kintsugi/comm/late.h"
#include "kintsugi/comm/mpi/board.h"

namespace kintsugi::comm {

class MpiCommunicator;

class MpiProcess {
 public:
  explicit MpiProcess(const WorldOptions& options);
  ~MpiProcess();

  // The seat at the board of a rank of this node, -1 for one of another node.
  int seat(int world_rank) const { return seats_[world_rank]; }
  int seat() const { return seats_[rank]; }

  // Gives the others time to say what they waited for, and ends all processes.
  [[noreturn]] void abort(const std::string& why);
  // After the end of the run. Where time ran out, and `own` lacks somebody, a rank says what it waited for itself.
  [[noreturn]] void throw_end(const Late& own);
  // What ranks of other nodes have said in files: of a collective of their row, or of a message to or from `member`.
  // This rank says how far it is first, and waits a little for those in `world_ranks` that have not yet.
  void ask_far_ranks(const std::vector<int>& world_ranks);
  Came far_collective(int world_rank, int row, uint64_t number) const;
  Came far_message(int world_rank, int row, int member, bool send, uint64_t number) const;
  void run_out_of_time(const Late& own) { board->end(own.text, true); }  // then throw_end()

  int rank = 0, size = 1;
  std::chrono::milliseconds time_limit;
  std::unique_ptr<Board> board;
  MPI_Comm meeting = MPI_COMM_NULL;  // where groups are agreed on
  std::vector<MpiCommunicator*> communicators;
  bool failed = false;  // something is open that will never be done

 private:
  std::string file(int world_rank) const;

  std::vector<int> seats_;
  std::string folder_, name_;     // "": no files
  std::vector<std::string> far_;  // [world rank] what its file said
  int exceptions_;
};

// Waits without burning a core for long: call idle() after every look that found nothing.
class Patience {
 public:
  explicit Patience(std::chrono::milliseconds limit) : begin_(Clock::now()), limit_(begin_ + limit) {}

  bool is_over() const { return Clock::now() >= limit_; }
  void idle();
  void something_happened() { begin_ = Clock::now(); }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point begin_, limit_;
};

}  // namespace kintsugi::comm
