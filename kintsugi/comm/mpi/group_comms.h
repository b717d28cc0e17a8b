// The MPI communicators of this process, one for each list of ranks: MPI has few. The groups of the same ranks share
// it, each with tags of its own.
#pragma once

#include <mpi.h>

#include <map>
#include <set>
#include <vector>

namespace kintsugi::comm {

class GroupComms {
 public:
  // The first of as many block numbers as may be used for a new group of `ranks`, so far as this rank knows. The
  // members use the largest that any of them gives: it is above those of all their living groups.
  int first_free_block(const std::vector<int>& ranks) const;
  // The communicator of `ranks` for a group with this block of tags, until give(). All members call it together.
  MPI_Comm take(const std::vector<int>& ranks, int block);
  void give(const std::vector<int>& ranks, int block);
  // Frees all communicators. Every rank calls it, when no group is left.
  void free_all();

  static constexpr int kTags = 3;  // of a block: two lanes, messages

 private:
  struct Shared {
    MPI_Comm comm = MPI_COMM_NULL;
    std::set<int> blocks;  // of living groups
  };

  std::map<std::vector<int>, Shared> shared_;  // by ranks
};

}  // namespace kintsugi::comm
