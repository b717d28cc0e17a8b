// The schedule as executed by a rank.
#pragma once

#include <span>
#include <vector>

#include "kintsugi/profile/measure.h"

namespace kintsugi::profile {

// Queue "compute": the calls, and the waits between and within them that were not short. One queue per axis: transfers
// in flight over it, from the arrival of the last member to the end of the wait; sends are omitted, since their
// receives are included. Merges adjacent blocks of one kind. Very long queues are truncated.
std::vector<QueueBlocks> blocks_of(const program::Program& p, const StepTimes& times, std::span<const Wait> waits);

}  // namespace kintsugi::profile
