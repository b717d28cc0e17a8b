// Assigns every buffer a fixed offset. Nothing is allocated after this.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// States are stored one after another in the state region, in the order of their kinds and layers; those in the file
// likewise there. All lists of calls share one arena. Within a list, no two buffers that are live at one time have a
// byte in common, except an output that reuses the memory of an input which ends there, where the operation's row
// allows it: see live_ranges.h, pack.h and, for lists with several micro-batches under way at one time, slots.h.
//
// `enough`: bytes of a rank below which no better plan is looked for.
void plan_memory(program::Program& p, const graph::OpTable& operations, int64_t enough = 0);

}  // namespace kintsugi::lower
