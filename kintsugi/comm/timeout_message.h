// The message of a Timeout, the same for every backend.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/comm/operation.h"

namespace kintsugi::comm {

class Timeout;

struct TimeoutMessage {
  std::string text;                   // "all_reduce of 8 bytes among ranks 0 1 did not end within 2 s: ..."
  std::vector<int> arrived, missing;  // ranks of the group
  bool absent = false;                // a member is known not to have arrived, or its state is unknown
};

// State of a member: `stuck` has arrived but has not polled its operations for a long time; `unknown` is on another
// node and has reported nothing.
enum class Arrival { arrived, absent, stuck, unknown };

// "rank 2", "ranks 0 1 3"
std::string list_ranks(std::span<const int> ranks);
// The operation of member `self`, with ranks of the world: "send of 8 bytes from rank 4 to rank 6".
std::string describe(const Operation& operation, int self, std::span<const int> world_ranks);
// `members` of the group take part, `arrivals` is the state of each; `missing` becomes those that are absent, stuck or
// unknown.
TimeoutMessage timeout_message(const std::string& what, std::chrono::milliseconds limit,
                               std::span<const int> world_ranks, std::span<const int> members,
                               const std::vector<Arrival>& arrivals);
[[noreturn]] void throw_timeout(const TimeoutMessage& message);
// Rethrows the error, extended by what a rank of the world was doing: "rank 2: after step 7: all_reduce of ...".
[[noreturn]] void throw_timeout_of(int rank, std::string_view doing, const Timeout& error);

}  // namespace kintsugi::comm
