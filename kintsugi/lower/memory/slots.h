// Memory of a list of calls in which several micro-batches are under way at one time.
//
// The problem: bodies are shared by all micro-batches, so a buffer has one offset in the program; but while several
// micro-batches are under way, each has its own values in it. So buffers are placed in *segments*, at fixed offsets,
// and each call has a *slot*, which says where in the arena every segment begins for this call. A buffer that is
// carried from call to call is in a segment determined by the bodies that touch it, and each micro-batch has an
// instance of such a segment, from the first of these calls to the last. The temporaries of one body are in holes of
// segments that begin or end with it, or in a segment of their own. To be found: offsets in segments, and where
// segments begin, in as few bytes as possible.
//
// The invariant: two buffers that are live at one time, of one micro-batch or of two, have no byte in common, except
// an output that reuses the memory of its input. (program::verify checks it.)
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/lower/memory/slots_placement.h"
#include "kintsugi/lower/memory/slots_segments.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// Whether a micro-batch begins before the previous one has ended. Other lists need no slots.
bool interleaves(const program::CallList& list);

struct SlotPlan {
  Segments segments;
  Placement placement;      // of the instances, and of temporaries; both in the order of segments
  int64_t lower_bound = 0;  // of the list: no plan is smaller
};

// The placement of such segments in the arena, without its lower bound.
ArenaDemand demand_of(const ListLiveness& liveness, const Segments& segments);

// The smallest plan over several grains and ways of placing; of equals the first. Others are not tried when one is
// close to the list's lower bound, or to `enough`.
SlotPlan best_slot_plan(const program::Program& p, const program::CallList& list, const ListLiveness& liveness,
                        int64_t enough = 0);

// Fills in the offsets of buffers in their segments, the slots of the list and of its calls, and its bytes and their
// lower bound.
void plan_slots(program::Program& p, size_t list, const graph::OpTable& operations, int64_t enough = 0);

}  // namespace kintsugi::lower
