// Memory of a list of calls in which several micro-batches are under way at one time.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// What several calls of a micro-batch touch lies in segments, one for each set of bodies; of a segment there are as
// many at one time as micro-batches are between the first and the last of these bodies. What one call alone touches
// lies where the segments that begin or end with it have room, or else in a segment of its own. Fills in the offsets
// of buffers in their segments, the slots of the list and of its calls, and its bytes and their lower bound.
void plan_slots(program::Program& p, size_t list, const graph::OpTable& operations);

}  // namespace kintsugi::lower
