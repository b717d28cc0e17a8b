// The queues of a rank: each runs its instructions in order, and concurrently with the others.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// compute: kernels; and waits, which block it until what they wait for is done. copy: between the arena and the rank's
// file. channel: the collectives of a group, or the messages of a channel, each a communicator.
enum class QueueKind : uint8_t { compute, copy, channel };

struct Queue {
  QueueKind kind = QueueKind::compute;
  std::vector<mesh::Factor> group = {};  // of a channel
  std::string channel = {};              // of messages
  int64_t peer = -1;                     // of messages

  auto operator<=>(const Queue&) const = default;
};

Queue queue_of(const Instruction& i);
// Of a wait: the queue of what it waits for.
Queue awaited_queue(const Instruction& i);

// The ranks of the channel that includes `rank`, in the order of a communicator; of messages both ends.
std::vector<int> members(const mesh::Mesh& mesh, const Queue& channel, int rank);

// The queues of a program: compute, copy if it has a file, and channels in an order that is the same on all ranks.
struct Queues {
  std::vector<Queue> all;
  std::vector<std::vector<int>> of;       // by body, by instruction: a position in `all`
  std::vector<std::vector<int>> awaited;  // the same, of waits; -1 of others
};
Queues queues_of(const Program& p);

}  // namespace kintsugi::program
