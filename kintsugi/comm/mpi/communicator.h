// A group of ranks over MPI. Its collectives run one after another, in the order of calls, each in two lanes; its
// messages run concurrently with them.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "kintsugi/comm/mpi/process.h"
#include "kintsugi/comm/mpi/segments.h"
#include "kintsugi/comm/operation.h"

namespace kintsugi::comm {

inline constexpr Backend kMpi = {.name = "mpi", .ranks = RankKind::process, .adds_in_rank_order = true};

// A row of the progress table of a member's node.
struct TableRow {
  int index = 0;
  uint32_t generation = 0;
};

class MpiCommunicator : public CheckedCommunicator {
 public:
  // `rows`: of the members; `block`: of its tags. All members construct theirs together.
  MpiCommunicator(std::shared_ptr<MpiProcess> process, std::vector<int> world_ranks, std::vector<TableRow> rows,
                  int block, const GroupOptions& options);
  ~MpiCommunicator() override;

  const Backend& backend() const override { return kMpi; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(ranks_.size()); }
  void wait(Event event) override;
  void progress() override;

 protected:
  Event enqueue(std::span<const Operation> operations) override;

 private:
  static constexpr int kLanes = GroupComms::kTags - 1;
  static constexpr size_t kPieces = 16;
  static constexpr size_t kPiece = 1 << 30;  // MPI counts in int

  struct Open {
    Operation operation;
    uint64_t number = 0;            // among the collectives, or the messages with that rank
    size_t segments = 0, next = 0;  // of a collective
    int num_requests = 0;           // of a message
    MPI_Request requests[kPieces];
    bool done = false;
  };

  Open& open(uint64_t event) { return open_[event % open_.size()]; }
  void start(const Operation& operation);
  void post_message(Open& open);
  bool advance_message(Open& open);
  bool advance_collective();
  bool advance();
  bool advance_all();
  void finish_oldest();
  // How the operations of members differ, as far as they are known; "": they agree.
  std::string mismatch(const Open& open) const;
  void require_match(const Open& open) const;
  TimeoutMessage timeout_of(const Open& open) const;

  const std::shared_ptr<MpiProcess> process_;
  const std::vector<int> ranks_;
  const std::vector<TableRow> rows_;
  const int block_;
  const GroupOptions options_;
  const MPI_Comm comm_;  // of all groups of these ranks
  int rank_ = 0;
  std::vector<Lane> lanes_;
  uint64_t collectives_ = 0;
  std::vector<uint64_t> sent_, received_;
  std::vector<Open> open_;  // events oldest_ to made_
  uint64_t oldest_ = 1, made_ = 0;
  uint64_t active_ = 1;  // collectives before this event are done
};

}  // namespace kintsugi::comm
