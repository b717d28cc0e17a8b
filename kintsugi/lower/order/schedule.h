// The order of calls: which body runs for which micro-batch.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "kintsugi/plan/schedule.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// Creates the lists "train" (the tasks of the program's stage, then update), "evaluate", "prefill", "decode", as far as
// their bodies exist. The first micro-batch has separate bodies ("forward.first", "backward.first"), which overwrite
// the accumulators; the others accumulate. The last also has one ("backward.last"; for a single micro-batch
// "backward.only"), in which each accumulator is reduced as soon as it is complete. What depends on the reduced value
// comes later: a cast before the next layer's reductions, a second reduction before the update.
void schedule(program::Program& p, const plan::Schedule& schedule);

// Ranges of accumulators, by root and beginning, that a micro-batch has overwritten.
using Overwritten = std::set<std::pair<program::BufferId, int64_t>>;
// Makes the first addition of the body to each range that is not among them overwrite it, and adds the range. Returns
// whether there was one.
bool overwrite_first(const program::Program& p, program::Body& body, Overwritten& overwritten);

}  // namespace kintsugi::lower
