// The communicators of a program on a rank: one for each group of ranks, and one for each channel of
// messages or of separate collectives.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/program/program.h"

namespace kintsugi::run {

class Groups {
 public:
  // Creates the communicator of `ranks` of the world; `open` are the transfers for which it is used.
  using Make = std::function<std::unique_ptr<comm::Communicator>(
      std::span<const int> ranks, const comm::GroupOptions& options, const program::OpenTransfers& open)>;

  // `sums`: the memory of the program for sums in rank order (program::ordered_sums); null if groups need none.
  // Collective; ranks create their groups in the same order.
  Groups(const program::Program& p, int rank, std::chrono::milliseconds time_limit, std::byte* sums, const Make& make);

  bool empty() const { return groups_.empty(); }
  // Of a collective, a message, or the wait for one.
  comm::Communicator& of(const program::Instruction& i) const { return *groups_.at({i.group, i.channel}); }
  // Makes progress on what the rank has enqueued in any group.
  void progress_all() const {
    if (!empty()) groups_.begin()->second->progress();
  }
  // The same, but polls each group: those of NCCL check only their own state.
  void progress_each() const {
    for (const auto& [channel, group] : groups_) group->progress();
  }
  // Before communicators on devices are destroyed: aborts what did not complete, in all of them at once.
  void end();

 private:
  std::map<program::Channel, std::unique_ptr<comm::Communicator>> groups_;
};

}  // namespace kintsugi::run
