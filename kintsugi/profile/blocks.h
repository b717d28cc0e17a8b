// The schedule as a rank ran it.
#pragma once

#include <span>
#include <vector>

#include "kintsugi/profile/measure.h"

namespace kintsugi::profile {

// The queue "compute": the calls, and between them and within them the waits that were not short. For each axis when
// transfers over it were under way: from when the last member came to the end of the wait for it; without sends, whose
// receives are there. Neighbours of one kind are one block. Of a queue with very many, the first.
std::vector<QueueBlocks> blocks_of(const program::Program& p, const StepTimes& times, std::span<const Wait> waits);

}  // namespace kintsugi::profile
