// When ranks arrived at the transfers that they share.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "kintsugi/profile/recorder.h"
#include "kintsugi/program/program.h"

namespace kintsugi::profile {

// Identifies a transfer on all of its members: transfers of a channel keep their order.
struct TransferKey {
  uint64_t channel = 0;  // hash of what its members have in common
  size_t number = 0;     // index in the channel, within the step

  auto operator<=>(const TransferKey&) const = default;
};

// A transfer as started by a rank.
struct Started {
  TransferKey key;
  std::vector<int> members;  // ranks that must have begun before it can complete, including this one
};

// [instruction over all calls, in order]: the transfers started; other instructions have no members.
std::vector<Started> started_by(const program::Program& p, program::Step step, int rank);

// What a rank reports to the others: when it began each transfer, by its own clock plus `offset`.
std::vector<int64_t> arrivals_of(std::span<const Started> started, const StepTimes& times, int64_t offset);

class Arrivals {
 public:
  // `by_rank`: the reports of all ranks.
  explicit Arrivals(const std::vector<std::vector<int64_t>>& by_rank);

  struct Last {
    int rank = -1;
    int64_t time = 0;
  };
  // The last member to begin. Throws InternalError if one has not.
  Last last(const Started& started) const;

 private:
  std::map<std::pair<int, uint64_t>, std::vector<int64_t>> times_;  // [rank, channel]
};

}  // namespace kintsugi::profile
