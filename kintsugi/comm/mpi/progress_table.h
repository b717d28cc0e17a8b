// How far each rank of a node is, in memory that they share outside MPI: so a rank that waits can say who has not
// arrived, which MPI cannot, and learns that the run has ended. A rank is its local rank here, counted on its node; it
// has a row for each of its communicators.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "kintsugi/comm/operation.h"

namespace kintsugi::comm {

class ProgressTable {
 public:
  static constexpr int kRows = 256;  // communicators of a rank that live at one time
  static constexpr int kKept = 256;  // the newest collectives of a row that are remembered
  static constexpr int kText = 1024;

  // For `local_size` ranks, and groups of up to `world_size`. Maps `path`, creating it if `create`.
  ProgressTable(const std::string& path, bool create, int local_size, int world_size);
  ~ProgressTable();
  ProgressTable(const ProgressTable&) = delete;
  ProgressTable& operator=(const ProgressTable&) = delete;

  // The row of `local_rank` for a new communicator, empty.
  int take_row(int local_rank);
  void give_row(int local_rank, int row);

  void publish(int local_rank, int row, const Operation& operation);    // the next collective
  void publish_message(int local_rank, int row, int other, bool send);  // `other` is a member of the group
  uint64_t collectives(int local_rank, int row) const;                  // published so far, as below
  uint64_t messages(int local_rank, int row, int other, bool send) const;
  // A rank marks that it looks at its open operations; the others ask how long ago it did.
  void mark_poll(int local_rank, int row);
  double seconds_since_poll(int local_rank, int row) const;
  // The rows that this process has taken, and how far they are: what ranks of other nodes read in a file.
  std::string text(int local_rank) const;
  // The n-th collective, without its buffers; false if it is not remembered.
  bool collective(int local_rank, int row, uint64_t n, Operation& operation) const;

  // The reason of the first caller stays, for all to read.
  void end(const std::string& why, bool out_of_time);
  bool ended() const;
  bool out_of_time() const;
  std::string why() const;

 private:
  struct Head {
    std::atomic<uint32_t> ended;  // 0, 1: being written, 2: ended, 3: out of time
    char text[kText];
  };
  struct Entry {
    std::atomic<uint64_t> bytes, rest;
  };
  struct Row {
    std::atomic<uint64_t> collectives;
    std::atomic<int64_t> polled;  // steady clock
    Entry kept[kKept];
    std::atomic<uint64_t> messages[];  // [member][receive, send]
  };

  Row& row(int local_rank, int row) const;

  const int world_size_;
  size_t row_bytes_ = 0, bytes_ = 0;
  std::byte* memory_ = nullptr;
  std::vector<bool> taken_;  // [row] of this rank
};

}  // namespace kintsugi::comm
