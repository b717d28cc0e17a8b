// The progress of each rank of a node, in memory that they share outside MPI: so a rank that waits can report who has
// not arrived, which MPI cannot, and learns that the run has ended. A rank is identified by its local rank, counted on
// its node; it has a row for each of its communicators.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "kintsugi/comm/operation.h"

namespace kintsugi::comm {

class ProgressTable {
 public:
  static constexpr int kRows = 8192;  // communicators of a rank that exist at one time
  static constexpr int kKept = 256;   // the newest collectives of a row that are remembered
  static constexpr int kText = 1024;

  struct Place {
    std::string path;  // of the memory
    bool create = false;
    int local_rank = 0;  // of this process
    int local_size = 1;
    int world_size = 1;  // how many members a group may have
  };
  // The memory is large and takes no space until it is written to. UserError if it cannot be mapped.
  explicit ProgressTable(const Place& place);
  ~ProgressTable();
  ProgressTable(const ProgressTable&) = delete;
  ProgressTable& operator=(const ProgressTable&) = delete;

  // A row of this rank for a new communicator, empty; UserError if none is left.
  int take_row();
  void give_row(int row);
  // How often a row of this rank was taken: others see by it whether the communicator that they know is still there.
  uint32_t generation(int row) const { return this->row(local_rank_, row).generation.load(); }
  // In a row of this rank: counts its next collective; its next message, to or from member `other` of the group.
  void publish(int row, const Operation& operation);
  void publish_message(int row, int other, bool send);
  // In a row of this rank: records that it looks at its open operations now.
  void mark_poll(int row);
  // The rows of this rank and their progress, as text: what ranks of other nodes read in a file.
  std::string text() const;

  // Of any rank: whether its row is still that of a communicator, made with this generation. If not, that rank has done
  // all that it had enqueued there.
  bool is_of(int local_rank, int row, uint32_t generation) const;
  // Of any rank: how many it has published, and how long ago it last looked.
  uint64_t collectives(int local_rank, int row) const;
  uint64_t messages(int local_rank, int row, int other, bool send) const;
  double seconds_since_poll(int local_rank, int row) const;
  // The n-th collective of a generation, without its buffers; false if it is not remembered.
  bool collective(int local_rank, int row, uint32_t generation, uint64_t n, Operation& operation) const;

  // The reason of the first caller is kept, for all to read; it is there when the call of any rank returns, unless that
  // caller was killed: then why() is empty.
  void end(const std::string& why, bool out_of_time);
  bool ended() const;
  bool out_of_time() const;
  std::string why() const;
  // This rank has said why it ends, or leaves that to others; whether all of this node have.
  void report();
  bool all_reported() const;

 private:
  struct Head {
    std::atomic<uint32_t> ended;     // 0, 1: being written, 2: ended, 3: out of time
    std::atomic<uint32_t> reported;  // ranks
    char text[kText];
  };
  struct Row {
    std::atomic<uint32_t> generation;  // odd: it is being emptied
    std::atomic<uint64_t> collectives;
    std::atomic<int64_t> polled;       // steady clock
    std::atomic<uint64_t> messages[];  // [member][receive, send]
  };
  struct Kept {  // a collective
    std::atomic<uint64_t> bytes, rest;
  };

  // The memory: Head, then all rows [local rank][row], then the collectives [local rank][row][kKept], so that a row
  // without any takes no page of them.
  size_t index(int local_rank, int row) const { return static_cast<size_t>(local_rank) * kRows + row; }
  Row& row(int local_rank, int row) const;
  Kept& kept(int local_rank, int row, uint64_t n) const;

  const int local_rank_, local_size_, world_size_;
  const size_t row_bytes_, kept_begin_, bytes_;
  std::byte* memory_ = nullptr;
  std::vector<bool> taken_;  // [row] of this rank
  bool reported_ = false;
  int unused_ = 0;  // rows from here on were never taken, and are zero
};

}  // namespace kintsugi::comm
