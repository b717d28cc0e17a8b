// Copies the parts of a checkpoint that the ranks have staged on their nodes to ranks on other nodes, a piece between
// two steps, so that the checkpoint survives the loss of a node before it is in the run's folder (local_parts.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/base/read_only_file.h"
#include "kintsugi/checkpoint/local_parts.h"
#include "kintsugi/comm/communicator.h"

namespace kintsugi::checkpoint {

// For each rank the rank that keeps a copy of its part: the one with the same position on the next node, in order of
// the ranks. -1: none, as there is one node.
std::vector<int> neighbours_of(const std::vector<std::string>& hosts);

// Functions are collective and called equally often on all ranks. Bytes arrive while the run computes; a rank that
// cannot write a copy warns and drops it.
class NeighbourCopies {
 public:
  NeighbourCopies(comm::World& world, const std::string& host, std::filesystem::path local);
  ~NeighbourCopies();
  NeighbourCopies(const NeighbourCopies&) = delete;
  NeighbourCopies& operator=(const NeighbourCopies&) = delete;

  bool several_nodes() const { return several_nodes_; }  // otherwise nothing is copied
  bool under_way() const { return pieces_ > 0; }

  // Begins to copy the part that this rank has staged.
  void begin(const std::filesystem::path& run_folder, const LocalPart& mine);
  // Waits for the previous piece, and starts the next. Returns whether all copies are complete.
  bool advance();
  // Waits for a piece in progress, and removes the copies that this rank holds: the checkpoint is in the run's folder.
  void end();

  double seconds() const { return seconds_; }  // that this rank spent in begin() and advance() since begin()

 private:
  struct Incoming;
  uint64_t size_of_piece(uint64_t bytes) const;
  void receive_piece();
  void close_copies();

  std::unique_ptr<comm::Communicator> all_;
  const std::filesystem::path local_;
  bool several_nodes_ = false;
  int to_ = -1;
  std::vector<std::unique_ptr<Incoming>> incoming_;
  base::ReadOnlyFile file_;  // of this rank
  std::string description_;  // of this rank; sent after the file
  std::vector<std::byte> sent_;
  uint64_t piece_bytes_ = 0;
  int64_t pieces_ = 0, next_ = 0;  // of the longest part; the description is one more
  std::optional<comm::Event> event_;
  double seconds_ = 0;
};

}  // namespace kintsugi::checkpoint
