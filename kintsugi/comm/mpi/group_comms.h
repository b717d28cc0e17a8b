// The MPI communicators of this process, one per list of ranks because MPI provides few. Groups of the same ranks share
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
  // The lowest block number this rank can use for a new group of `ranks`. The members use the maximum over all of them,
  // which is above the blocks of all their existing groups.
  int first_free_block(const std::vector<int>& ranks) const;
  // Acquires the communicator of `ranks` for a group with this block of tags, until give(). Collective over the
  // members; ends the process if one does not call within the time limit.
  MPI_Comm take(const std::vector<int>& ranks, int block, std::chrono::milliseconds time_limit);
  void give(const std::vector<int>& ranks, int block);
  // Frees all communicators. Collective over the world, after all groups are gone.
  void free_all();

  static constexpr int kTags = 3;  // per block: two lanes, messages

 private:
  struct Shared {
    MPI_Comm comm = MPI_COMM_NULL;
    std::set<int> blocks;  // of live groups
  };

  std::map<std::vector<int>, Shared> shared_;  // by ranks
};

}  // namespace kintsugi::comm
