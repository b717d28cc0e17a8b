// The world over MPI, and the entry of the module.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kintsugi/base/format.h"
#include "kintsugi/comm/mpi/check.h"
#include "kintsugi/comm/mpi/communicator.h"
#include "kintsugi/comm/mpi/entry.h"

namespace kintsugi::comm {
namespace {

class MpiWorld : public World {
 public:
  explicit MpiWorld(const WorldOptions& options) : process_(std::make_shared<MpiProcess>(options)) {}

  const Backend& backend() const override { return kMpi; }
  int rank() const override { return process_->rank; }
  int size() const override { return process_->size; }
  std::unique_ptr<Communicator> group(std::span<const int> ranks, const GroupOptions& options) override;
  void abort(const std::string& reason) override { process_->abort(reason); }
  void leave_to_others() override { process_->progress->report(); }

 private:
  // What the members agree on if all request the same group.
  struct Agreement {
    std::vector<TableRow> rows;  // of the members
    int block = 0;               // of tags
  };
  Agreement agree(std::span<const int> ranks, const TableRow& row, int block);

  const std::shared_ptr<MpiProcess> process_;
};

// What a member asks for. Of constant size, so that n members need O(n) memory each: the members themselves are
// compared by their number and a hash.
struct GroupRequest {
  int row = 0;
  uint32_t generation = 0;
  int block = 0, size = 0;
  uint64_t members = 0;
  char text[200] = {};  // of the members, shortened

  GroupRequest() = default;
  GroupRequest(std::span<const int> ranks, const TableRow& table_row, int block)
      : row(table_row.index),
        generation(table_row.generation),
        block(block),
        size(static_cast<int>(ranks.size())),
        members(0xcbf29ce484222325) {  // FNV-1a
    for (const int rank : ranks) members = (members ^ static_cast<uint32_t>(rank)) * 0x100000001b3;
    base::one_line(list_ranks(ranks), sizeof text - 1).copy(text, sizeof text - 1);
  }
  bool agrees_with(const GroupRequest& other) const { return size == other.size && members == other.members; }
};

MpiWorld::Agreement MpiWorld::agree(std::span<const int> ranks, const TableRow& row, int block) {
  const size_t n = ranks.size();
  constexpr int kBytes = sizeof(GroupRequest);
  std::vector<GroupRequest> asked(n);
  const GroupRequest mine(ranks, row, block);
  std::vector<MPI_Request> sends, receives(n, MPI_REQUEST_NULL);
  for (size_t m = 0; m < n; ++m) {
    if (ranks[m] == rank()) {
      asked[m] = mine;
      continue;
    }
    check_mpi(MPI_Irecv(&asked[m], kBytes, MPI_BYTE, ranks[m], 0, process_->agreement, &receives[m]));
    check_mpi(MPI_Isend(&mine, kBytes, MPI_BYTE, ranks[m], 0, process_->agreement, &sends.emplace_back()));
  }
  std::vector<Arrival> arrivals(n, Arrival::absent);
  Backoff backoff(process_->time_limit);
  for (size_t left = n; left > 0;) {
    for (size_t m = 0; m < n; ++m) {
      int done = 0;
      if (arrivals[m] == Arrival::absent) check_mpi(MPI_Test(&receives[m], &done, MPI_STATUS_IGNORE));
      if (done == 0) continue;
      arrivals[m] = Arrival::arrived;
      --left;
      if (mine.agrees_with(asked[m])) continue;
      process_->failed = true;
      const bool first = rank() < ranks[m];
      throw base::UserError("comm", "ranks do not agree on a group: rank {} asks for {}, rank {} for {}",
                            first ? rank() : ranks[m], first ? mine.text : asked[m].text, first ? ranks[m] : rank(),
                            first ? asked[m].text : mine.text);
    }
    if (left == 0) break;
    const bool out_of_time = backoff.is_over();
    if (out_of_time || process_->progress->ended()) {
      std::vector<int> members(n);
      std::iota(members.begin(), members.end(), 0);
      const TimeoutMessage why =
          timeout_message("making the group of " + list_ranks(ranks), process_->time_limit, ranks, members, arrivals);
      process_->failed = true;
      if (out_of_time) process_->run_out_of_time(why);
      process_->throw_end(why, backoff.waited());
    }
    backoff.pause();
  }
  check_mpi(MPI_Waitall(static_cast<int>(sends.size()), sends.data(), MPI_STATUSES_IGNORE));
  Agreement result;
  for (const GroupRequest& a : asked) {
    result.rows.push_back({a.row, a.generation});
    result.block = std::max(result.block, a.block);
  }
  return result;
}

std::unique_ptr<Communicator> MpiWorld::group(std::span<const int> ranks, const GroupOptions& options) {
  check_group(ranks, rank(), size());
  std::vector<int> members(ranks.begin(), ranks.end());
  const int row = process_->progress->take_row();
  Agreement agreed =
      agree(ranks, {row, process_->progress->generation(row)}, process_->comms.first_free_block(members));
  return std::make_unique<MpiCommunicator>(process_, std::move(members), std::move(agreed.rows), agreed.block, options);
}

}  // namespace
}  // namespace kintsugi::comm

extern "C" __attribute__((visibility("default"))) kintsugi::comm::World* kintsugi_mpi_world_3(
    const kintsugi::comm::WorldOptions* options) {
  return new kintsugi::comm::MpiWorld(*options);
}
