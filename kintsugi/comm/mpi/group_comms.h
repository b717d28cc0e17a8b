// The MPI communicators of this process, one for each list of ranks, since MPI has few. Groups of the same ranks share
// one, each with its own tags.
#pragma once

#include <mpi.h>

#include <chrono>
#include <map>
#include <set>
#include <vector>

namespace kintsugi::comm {

class GroupComms {
 public:
  // The first of the block numbers that may be used for a new group of `ranks`, as far as this rank knows. The members
  // use the largest that any of them returns: it is above those of all their existing groups.
  int first_free_block(const std::vector<int>& ranks) const;
  // The communicator of `ranks` for a group with this block of tags, until give(). All members call it together; where
  // one does not within the time limit, the process ends.
  MPI_Comm take(const std::vector<int>& ranks, int block, std::chrono::milliseconds time_limit);
  void give(const std::vector<int>& ranks, int block);
  // Frees all communicators. Every rank calls it, when no group is left.
  void free_all();

  static constexpr int kTags = 3;  // of a block: two lanes, messages

 private:
  struct Shared {
    MPI_Comm comm = MPI_COMM_NULL;
    std::set<int> blocks;  // of existing groups
  };

  std::map<std::vector<int>, Shared> shared_;  // by ranks
};

}  // namespace kintsugi::comm
