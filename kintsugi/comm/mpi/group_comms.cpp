#include "kintsugi/comm/mpi/group_comms.h"

#include "kintsugi/base/watchdog.h"
#include "kintsugi/comm/mpi/check.h"
#include "kintsugi/comm/timeout_message.h"
#include "kintsugi/launch/process.h"

namespace kintsugi::comm {
namespace {

MPI_Comm comm_of(const std::vector<int>& ranks) {
  MPI_Group all = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &all));
  check_mpi(MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &members));
  check_mpi(MPI_Comm_create_group(MPI_COMM_WORLD, members, 0, &comm));
  check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  check_mpi(MPI_Group_free(&members));
  check_mpi(MPI_Group_free(&all));
  return comm;
}

// The largest valid tag.
int max_tag() {
  void* value = nullptr;
  int is_set = 0;
  check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &is_set));
  return is_set != 0 ? *static_cast<int*>(value) : 32767;  // guaranteed by the standard
}

}  // namespace

int GroupComms::first_free_block(const std::vector<int>& ranks) const {
  const auto found = shared_.find(ranks);
  return found == shared_.end() || found->second.blocks.empty() ? 0 : *found->second.blocks.rbegin() + 1;
}

MPI_Comm GroupComms::take(const std::vector<int>& ranks, int block, std::chrono::milliseconds time_limit) {
  const int most = (max_tag() - kTags + 1) / kTags;
  if (block > most) throw base::UserError("comm", "more than {} concurrent groups of the same ranks", most + 1);
  Shared& shared = shared_[ranks];
  if (shared.comm == MPI_COMM_NULL) {
    const base::Watchdog watchdog("comm", launch::this_process().rank, "making a communicator of " + list_ranks(ranks),
                                  "", time_limit);
    shared.comm = comm_of(ranks);
  }
  shared.blocks.insert(block);
  return shared.comm;
}

void GroupComms::give(const std::vector<int>& ranks, int block) {
  shared_[ranks].blocks.erase(block);
}

void GroupComms::free_all() {
  for (auto& [ranks, shared] : shared_) MPI_Comm_free(&shared.comm);
  shared_.clear();
}

}  // namespace kintsugi::comm
