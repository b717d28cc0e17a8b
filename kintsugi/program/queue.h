// The queues of a rank: instructions of a queue execute in order, and queues run concurrently.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// compute: kernels; and waits, which block it until what they wait for is done. copy: between the arena and the rank's
// file. channel: the collectives of a group, or the messages of a channel; one communicator each.
enum class QueueKind : uint8_t { compute, copy, channel };

struct Queue {
  QueueKind kind = QueueKind::compute;
  std::vector<mesh::Factor> group = {};  // channels only
  std::string channel = {};              // of messages, and of collectives apart from the others of the group
  int64_t peer = -1;                     // messages only

  auto operator<=>(const Queue&) const = default;
};

Queue queue_of(const Instruction& i);
// The queue that a wait waits for.
Queue awaited_queue(const Instruction& i);

// The ranks of the channel that includes `rank`, in communicator order; for messages both ends.
std::vector<int> members(const mesh::Mesh& mesh, const Queue& channel, int rank);

// The queues of a program: compute, copy if it has a file, and channels in an order common to all ranks.
struct Queues {
  std::vector<Queue> all;
  std::vector<std::vector<int>> of;       // [body][instruction]: index into `all`
  std::vector<std::vector<int>> awaited;  // as `of`, for waits; else -1
};
Queues queues_of(const Program& p);

}  // namespace kintsugi::program
