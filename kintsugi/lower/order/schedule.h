// The order of calls: which body runs for which micro-batch.
#pragma once

#include "kintsugi/plan/schedule.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// Lists "train" (the tasks of the program's stage, then update), "evaluate", "prefill", "decode", if their bodies
// exist. The first micro-batch has separate bodies ("forward.first", "backward.first"), which replace the contents of
// the accumulators; the others add. The last has one too ("backward.last"; of a single one, "backward.only"), in which
// each accumulator is reduced as soon as nothing more is added to it. What needs the sum stands later: a cast ahead of
// the next layer's sums, a second sum before the update.
void schedule(program::Program& p, const plan::Schedule& schedule);

}  // namespace kintsugi::lower
