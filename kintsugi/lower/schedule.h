// The order of calls: which body runs for which micro-batch.
#pragma once

#include "kintsugi/plan/schedule.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// Lists "train" (the tasks of the program's stage, then update), "evaluate", "prefill", "decode", as far as their
// bodies exist. The first micro-batch has bodies of its own ("forward.first", "backward.first"), which replace
// what the accumulators held; the others add. The last has one too ("backward.last"; of a single one, "backward.only"),
// in which each accumulator is reduced as soon as nothing is added to it any more.
void schedule(program::Program& p, const plan::Schedule& schedule);

}  // namespace kintsugi::lower
