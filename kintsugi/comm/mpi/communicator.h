// A group of ranks over MPI. Its collectives execute one after another, in call order, each in two lanes; its messages
// run concurrently with them.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "kintsugi/comm/mpi/process.h"
#include "kintsugi/comm/mpi/segments.h"
#include "kintsugi/comm/operation.h"

namespace kintsugi::comm {

inline constexpr Backend kMpi = {.name = "mpi", .ranks = RankKind::process, .adds_in_rank_order = true};

// A row of the progress table on a member's node.
struct TableRow {
  int index = 0;
  uint32_t generation = 0;
};

class MpiCommunicator : public CheckedCommunicator {
 public:
  // `rows`: those of the members; `block`: the group's block of tags. Collective over the members.
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
  static constexpr size_t kPiece = 1 << 30;  // MPI counts are int

  struct Open {
    Operation operation;
    uint64_t number = 0;            // among the collectives, or among the messages with that rank
    size_t segments = 0, next = 0;  // collectives only
    int num_requests = 0;           // messages only
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
  // How the operations of the members known so far disagree; "": they agree.
  std::string mismatch(const Open& open) const;
  void require_match(const Open& open) const;
  TimeoutMessage timeout_of(const Open& open) const;

  const std::shared_ptr<MpiProcess> process_;
  const std::vector<int> ranks_;
  const std::vector<TableRow> rows_;
  const int block_;
  const GroupOptions options_;
  const MPI_Comm comm_;  // shared by all groups of these ranks
  int rank_ = 0;
  std::vector<Lane> lanes_;
  uint64_t collectives_ = 0;
  std::vector<uint64_t> sent_, received_;
  std::vector<Open> open_;  // events oldest_ to made_
  uint64_t oldest_ = 1, made_ = 0;
  uint64_t active_ = 1;  // collectives before this event have completed
};

}  // namespace kintsugi::comm
