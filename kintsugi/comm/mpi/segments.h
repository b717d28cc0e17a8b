// Implements collectives by messages. A collective is cut into segments of a few MiB, so that the staging memory of a
// reduction is small and allocated in advance. A segment is an exchange of messages, for reductions followed by an
// addition, and in some cases a second exchange:
//
//   all_reduce      every rank sends share r to rank r, adds its own share, and sends the sum to all
//   reduce          the same, but the sum goes to the root
//   broadcast       the root sends share r to rank r, which sends it to the others
//   reduce_scatter  the first half of all_reduce
//   the others      one exchange
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "kintsugi/comm/operation.h"

namespace kintsugi::comm {

// The number of segments of an operation among `size` ranks; 0 for an empty operation.
size_t num_segments(const Operation& operation, int size);

// Executes segments one after another. Its messages use `tag`, which no other lane of `comm` uses.
class Lane {
 public:
  Lane(MPI_Comm comm, int rank, int size, int tag);

  bool is_busy() const { return phase_ != Phase::idle; }
  void start(const Operation& operation, size_t segment);
  // Proceeds as far as possible without blocking. Returns true on progress.
  bool advance();

 private:
  enum class Phase { idle, first, second };

  // Range of bytes within the segment's whole, or within each part.
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
  size_t part_ = 0;               // bytes of a part, if the operation has parts
  size_t begin_ = 0, bytes_ = 0;  // range of the segment
  size_t share_ = 0;              // bytes of the largest share
};

}  // namespace kintsugi::comm
