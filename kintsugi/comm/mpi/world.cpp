// The world over MPI, and the entry of the module.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

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

// Every member sends every other its request: its row, its first free block, the number of members, and the members.
MpiWorld::Agreement MpiWorld::agree(std::span<const int> ranks, const TableRow& row, int block) {
  const size_t n = ranks.size(), length = process_->size + 4;
  std::vector<std::vector<int>> asked(n, std::vector<int>(length, 0));
  std::vector<int> mine = {row.index, static_cast<int>(row.generation), block, static_cast<int>(n)};
  mine.insert(mine.end(), ranks.begin(), ranks.end());
  mine.resize(length);
  std::vector<MPI_Request> sends, receives(n, MPI_REQUEST_NULL);
  for (size_t m = 0; m < n; ++m) {
    if (ranks[m] == rank()) {
      asked[m] = mine;
      continue;
    }
    const int count = static_cast<int>(length);
    check_mpi(MPI_Irecv(asked[m].data(), count, MPI_INT, ranks[m], 0, process_->agreement, &receives[m]));
    check_mpi(MPI_Isend(mine.data(), count, MPI_INT, ranks[m], 0, process_->agreement, &sends.emplace_back()));
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
      if (std::equal(mine.begin() + 3, mine.end(), asked[m].begin() + 3)) continue;
      const std::span<const int> other(asked[m].data() + 4, asked[m][3]);
      process_->failed = true;
      const int first = std::min(rank(), ranks[m]), second = std::max(rank(), ranks[m]);
      throw base::UserError("comm", "ranks do not agree on a group: rank {} asks for {}, rank {} for {}", first,
                            list_ranks(first == rank() ? ranks : other), second,
                            list_ranks(second == rank() ? ranks : other));
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
  for (const auto& a : asked) {
    result.rows.push_back({a[0], static_cast<uint32_t>(a[1])});
    result.block = std::max(result.block, a[2]);
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
