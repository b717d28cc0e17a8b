// Every buffer gets a fixed offset. Nothing is allocated after this.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// States lie one after another in the state region, in the order of their kinds and layers; what is in the file, there.
// All lists of calls share one arena. Within a list, no two buffers that are live at one time have a byte in common,
// but for an output that takes the memory of an input which ends there, where the operation's row allows it: see
// live_ranges.h, pack.h and, where several micro-batches are under way at one time, slots.h.
void plan_memory(program::Program& p, const graph::OpTable& operations);

}  // namespace kintsugi::lower
