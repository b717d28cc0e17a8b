// When ranks came to the transfers that they share.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "kintsugi/profile/recorder.h"
#include "kintsugi/program/program.h"

namespace kintsugi::profile {

// The same transfer on each of its members: the transfers of a channel keep their order.
struct TransferKey {
  uint64_t channel = 0;  // a hash of what its members have in common
  size_t number = 0;     // in the channel, within the step

  auto operator<=>(const TransferKey&) const = default;
};

// A transfer as a rank starts it.
struct Started {
  TransferKey key;
  std::vector<int> members;  // those that must have begun before it is done, this rank among them
};

// By instruction of all calls of the list, in order: of those that start a transfer; the others have no members.
std::vector<Started> started_by(const program::Program& p, program::Step step, int rank);

// What a rank tells the others: when it began to start each transfer, by its own clock plus `offset`.
std::vector<int64_t> arrivals_of(std::span<const Started> started, const StepTimes& times, int64_t offset);

class Arrivals {
 public:
  // What each rank tells.
  explicit Arrivals(const std::vector<std::vector<int64_t>>& by_rank);

  struct Last {
    int rank = -1;
    int64_t time = 0;
  };
  // The member that was the last to begin. InternalError if one has not.
  Last last(const Started& started) const;

 private:
  std::map<std::pair<int, uint64_t>, std::vector<int64_t>> times_;  // by rank and channel
};

}  // namespace kintsugi::profile
