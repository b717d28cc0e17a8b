// Where the ranks of a node say how far they are, outside MPI: memory that they share. So a rank that waits knows who
// has not come, though MPI does not tell, and whether the run has ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "kintsugi/comm/call.h"

namespace kintsugi::comm {

class Board {
 public:
  static constexpr int kRows = 256;   // communicators of a rank that live at one time
  static constexpr int kCalls = 256;  // the newest calls of a row that are remembered
  static constexpr int kText = 1024;

  // `seats` of them; `world_size` ranks may be members of a row. Maps `path`, creating it if `create`.
  Board(const std::string& path, bool create, int seats, int world_size);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  // The row of `seat` for a new communicator, empty.
  int take_row(int seat);
  void give_row(int seat, int row);

  void publish(int seat, int row, const Call& call);              // the next collective
  void publish_message(int seat, int row, int other, bool send);  // `other` is a member of the group
  uint64_t collectives(int seat, int row) const;                  // published so far, as below
  uint64_t messages(int seat, int row, int other, bool send) const;
  // `seat` goes on with what it began; how long ago another one did.
  void look(int seat, int row);
  double seconds_since_look(int seat, int row) const;
  // The rows that this process has taken, and how far they are, for others to read in a file.
  std::string text(int seat) const;
  // The n-th collective; false if it is not remembered. Buffers are not known.
  bool call(int seat, int row, uint64_t n, Call& call) const;

  // The first says why; others read it.
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
    std::atomic<int64_t> looked;  // nanoseconds of the steady clock
    Entry calls[kCalls];
    std::atomic<uint64_t> messages[];  // [member][receive, send]
  };

  Row& row(int seat, int row) const;

  const int world_size_;
  size_t row_bytes_ = 0, bytes_ = 0;
  std::byte* memory_ = nullptr;
  std::vector<bool> taken_;  // rows of this rank
};

}  // namespace kintsugi::comm
