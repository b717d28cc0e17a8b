// What is said of an operation that did not end, the same for every backend.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/comm/call.h"

namespace kintsugi::comm {

struct Late {
  std::string text;                   // "all_reduce of 8 bytes among ranks 0 1 did not end within 2 s: ..."
  std::vector<int> arrived, missing;  // ranks of the group
  bool absent = false;                // one has not come, as far as is known
};

// What is known of a member; `stuck` is one that arrived and has not looked at what it began since long,
// `unknown` one of another node that says nothing.
enum class Came { yes, no, stuck, unknown };

// "rank 2", "ranks 0 1 3"
std::string list_ranks(std::span<const int> ranks);
// What `call` of the member `self` is, with ranks of the world: "send of 8 bytes from rank 4 to rank 6".
std::string describe(const Call& call, int self, std::span<const int> world_ranks);
// Of `members` of the group: those of the message, if it is one. `missing` are all that are not known to be there.
Late late(const std::string& what, std::chrono::milliseconds limit, std::span<const int> world_ranks,
          std::span<const int> members, const std::vector<Came>& came);
[[noreturn]] void throw_late(const Late& late);

}  // namespace kintsugi::comm
