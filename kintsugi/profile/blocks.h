// The schedule as a rank ran it.
#pragma once

#include <span>
#include <vector>

#include "kintsugi/profile/measure.h"

namespace kintsugi::profile {

// The queue "compute": the calls, and between them and within them the waits for other ranks that were not short; and
// for each axis the transfers over it. Neighbours of one kind are one block. Of a queue with very many, the first.
std::vector<QueueBlocks> blocks_of(const program::Program& p, const Recorder& recorder, std::span<const Wait> waits);

}  // namespace kintsugi::profile
