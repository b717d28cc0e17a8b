// The progress of each rank of a node, in memory shared outside MPI: a waiting rank can report who has not arrived,
// which MPI cannot, and learns that the run has ended. A rank is identified by its local rank on the node, and has a
// row for each of its communicators.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "kintsugi/comm/operation.h"

namespace kintsugi::comm {

class ProgressTable {
 public:
  static constexpr int kRows = 8192;  // maximum number of live communicators per rank
  static constexpr int kKept = 256;   // number of newest collectives kept per row
  static constexpr int kText = 1024;

  struct Place {
    std::string path;  // of the shared memory
    bool create = false;
    int local_rank = 0;  // of this process
    int local_size = 1;
    int world_size = 1;  // maximum number of group members
  };
  // The mapping is large but sparse: untouched pages take no space. Throws UserError if it cannot be mapped.
  explicit ProgressTable(const Place& place);
  ~ProgressTable();
  ProgressTable(const ProgressTable&) = delete;
  ProgressTable& operator=(const ProgressTable&) = delete;

  // Claims an empty row of this rank for a new communicator; throws UserError if none is left.
  int take_row();
  void give_row(int row);
  // How often a row of this rank has been taken: lets others detect that the communicator they know is gone.
  uint32_t generation(int row) const { return this->row(local_rank_, row).generation.load(); }
  // In a row of this rank: counts its next collective, or its next message to or from member `other` of the group.
  void publish(int row, const Operation& operation);
  void publish_message(int row, int other, bool send);
  // In a row of this rank: records that it polls its operations now.
  void mark_poll(int row);
  // The rows of this rank and their progress as text, for the file that ranks of other nodes read.
  std::string text() const;

  // For any rank: whether the row still belongs to the communicator of this generation. If not, that rank has completed
  // everything it had enqueued there.
  bool is_of(int local_rank, int row, uint32_t generation) const;
  // For any rank: how many operations it has published, and how long ago it last polled.
  uint64_t collectives(int local_rank, int row) const;
  uint64_t messages(int local_rank, int row, int other, bool send) const;
  double seconds_since_poll(int local_rank, int row) const;
  // The n-th collective of a generation, without its buffers; false if it is no longer kept.
  bool collective(int local_rank, int row, uint32_t generation, uint64_t n, Operation& operation) const;

  // Ends the run. The first caller's reason is kept, and can be read by all when the call of any rank returns, unless
  // that caller was killed: then why() is empty.
  void end(const std::string& why, bool out_of_time);
  bool ended() const;
  bool out_of_time() const;
  std::string why() const;
  // report(): this rank has reported why it ends, or leaves that to others. all_reported(): all ranks of the node have.
  void report();
  bool all_reported() const;

 private:
  struct Head {
    std::atomic<uint32_t> ended;     // 0, 1: being written, 2: ended, 3: out of time
    std::atomic<uint32_t> reported;  // number of ranks
    char text[kText];
  };
  struct Row {
    std::atomic<uint32_t> generation;  // odd: the row is being cleared
    std::atomic<uint64_t> collectives;
    std::atomic<int64_t> polled;       // steady clock
    std::atomic<uint64_t> messages[];  // [member][receive, send]
  };
  struct Kept {  // one collective
    std::atomic<uint64_t> bytes, rest;
  };

  // Layout of the memory: Head, then all rows [local rank][row], then the collectives [local rank][row][kKept], so that
  // a row without collectives touches no page of them.
  size_t index(int local_rank, int row) const { return static_cast<size_t>(local_rank) * kRows + row; }
  Row& row(int local_rank, int row) const;
  Kept& kept(int local_rank, int row, uint64_t n) const;

  const int local_rank_, local_size_, world_size_;
  const size_t row_bytes_, kept_begin_, bytes_;
  std::byte* memory_ = nullptr;
  std::vector<bool> taken_;  // [row] of this rank
  bool reported_ = false;
  int unused_ = 0;  // first row that was never taken; it and later rows are zero
};

}  // namespace kintsugi::comm
