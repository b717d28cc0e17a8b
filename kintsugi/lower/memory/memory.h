// Assigns every buffer a fixed offset. Nothing is allocated after this.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// States are stored consecutively in the state region, by kind and layer; states in the file likewise. All lists of
// calls share one arena. Within a list, no two buffers that are live at the same time overlap, except an output that
// reuses the memory of an input ending there, if the operation's row allows it: see live_ranges.h, pack.h and, for
// lists with several micro-batches in flight, slots.h.
//
// `enough`: bytes per rank below which no better plan is sought.
void plan_memory(program::Program& p, const graph::OpTable& operations, int64_t enough = 0);

}  // namespace kintsugi::lower
