// This process as an MPI rank: what it shares with the ranks of its node, and how a run ends.
#pragma once

#include <mpi.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "kintsugi/base/patience.h"
#include "kintsugi/comm/mpi/group_comms.h"
#include "kintsugi/comm/mpi/progress_table.h"
#include "kintsugi/comm/timeout_message.h"

namespace kintsugi::comm {

class MpiCommunicator;

class MpiProcess {
 public:
  explicit MpiProcess(const WorldOptions& options);
  ~MpiProcess();

  // The local rank of a rank on this node; -1 if it is on another node.
  int local_rank(int world_rank) const { return local_ranks_[world_rank]; }

  // Gives the other ranks time to report what they waited for, then ends all processes.
  [[noreturn]] void abort(const std::string& why);
  // After the end of the run: throws its reason as a Timeout. If the reason is a time limit, this rank has waited about
  // as long, and a member is also missing from its own operation, throws `own` instead, which names that operation.
  [[noreturn]] void throw_end(const TimeoutMessage& own, const base::Patience& waited);
  // Ranks of other nodes write their progress to files when a wait times out. Writes this rank's file, waits briefly
  // for those of `world_ranks`, and reads them; afterwards it is known whether each has enqueued a collective of its
  // row, or a message to or from `member`.
  void read_other_nodes(const std::vector<int>& world_ranks);
  Arrival collective_elsewhere(int world_rank, int row, uint64_t number) const;
  Arrival message_elsewhere(int world_rank, int row, int member, bool send, uint64_t number) const;
  void run_out_of_time(const TimeoutMessage& own) { progress->end(own.text, true); }  // followed by throw_end()

  int rank = 0, size = 1;
  std::chrono::milliseconds time_limit;
  std::unique_ptr<ProgressTable> progress;  // for this node
  MPI_Comm agreement = MPI_COMM_NULL;       // used by members to agree on a group
  GroupComms comms;
  size_t num_communicators = 0;
  std::vector<MpiCommunicator*> busy;  // those with operations in flight
  bool failed = false;                 // an operation in flight can never complete

 private:
  std::string file(int world_rank) const;

  std::vector<int> local_ranks_;
  std::string folder_, name_;           // "": no files
  std::vector<std::string> elsewhere_;  // [world rank] contents of its file
  int exceptions_;                      // in flight when the world was created
};

// Waits without occupying a core for long: call pause() whenever there was no progress. Expires after the time limit.
class Backoff {
 public:
  explicit Backoff(std::chrono::milliseconds limit) : begin_(Clock::now()), waited_(limit) {}

  bool is_over() { return waited_.is_over(); }
  void pause();
  void reset() {
    begin_ = Clock::now();
    waited_.is_over();
  }
  const base::Patience& waited() const { return waited_; }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point begin_;
  base::Patience waited_;
};

}  // namespace kintsugi::comm
