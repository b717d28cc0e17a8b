// A collective as messages. It is cut into segments of a few MiB, so that the memory for the terms of a sum is small
// and allocated in advance. A segment is an exchange of messages, in reductions an addition, and in some a second
// exchange:
//
//   all_reduce      every rank sends share r to rank r, adds its own share, and sends that to all
//   reduce          the same, and sends it to the root
//   broadcast       the root sends share r to rank r, which sends it to the others
//   reduce_scatter  like the first half of all_reduce
//   the others      one exchange
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "kintsugi/comm/operation.h"

namespace kintsugi::comm {

// The number of segments of an operation among `size` ranks; 0 where there is nothing to do.
size_t num_segments(const Operation& operation, int size);

// Moves segments, one after another. Its messages have tag `tag`, which no other lane of `comm` uses.
class Lane {
 public:
  Lane(MPI_Comm comm, int rank, int size, int tag);

  bool is_busy() const { return phase_ != Phase::idle; }
  void start(const Operation& operation, size_t segment);
  // Proceeds as far as possible without waiting. True if it made progress.
  bool advance();

 private:
  enum class Phase { idle, first, second };

  // The bytes of the segment within the whole, or within each part.
  size_t share_begin(int rank) const;
  size_t share_size(int rank) const;
  void send(const std::byte* from, size_t bytes, int to);
  void receive(std::byte* to, size_t bytes, int from);
  std::byte* staged(int rank) { return staging_.get() + static_cast<size_t>(rank) * share_; }
  void first_exchange();
  void add();
  bool second_exchange();  // false: there is none

  const MPI_Comm comm_;
  const int rank_, size_, tag_;
  std::unique_ptr<std::byte[]> staging_;  // shares of the ranks, then a result
  std::vector<MPI_Request> requests_;
  int num_requests_ = 0;
  std::vector<const std::byte*> terms_;

  Phase phase_ = Phase::idle;
  Operation operation_;
  size_t part_ = 0;               // bytes of a part of the operation, if it has any
  size_t begin_ = 0, bytes_ = 0;  // the segment
  size_t share_ = 0;              // bytes, of the largest share
};

}  // namespace kintsugi::comm
