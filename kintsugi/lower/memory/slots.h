// Memory of a list of calls with several micro-batches in flight.
//
// Problem: bodies are shared by all micro-batches, so a buffer has one offset in the program; but with several
// micro-batches in flight, each has its own values in it. Buffers are therefore placed at fixed offsets in *segments*,
// and each call has a *slot*, which gives the start of every segment in the arena for this call. A buffer that is
// carried from call to call is in a segment determined by the bodies that touch it, and each micro-batch has an
// instance of that segment, from the first of these calls to the last. The temporaries of one body are in holes of
// segments that begin or end with it, or in a segment of their own. The unknowns are offsets in segments and starts of
// segments, in as few bytes as possible.
//
// Invariant: two buffers that are live at the same time, of one micro-batch or of two, do not overlap, except an output
// that reuses the memory of its input. (program::verify checks it.)
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
  Placement placement;      // of instances and of temporaries, both in segment order
  int64_t lower_bound = 0;  // for the list: no plan is smaller
};

// The placement problem of these segments in the arena, without its lower bound.
ArenaDemand demand_of(const ListLiveness& liveness, const Segments& segments);

// The smallest plan over several grains and placement methods; ties go to the first. Stops early if one is close to the
// list's lower bound, or to `enough`.
SlotPlan best_slot_plan(const program::Program& p, const program::CallList& list, const ListLiveness& liveness,
                        int64_t enough = 0);

// Sets the offsets of buffers in their segments, the slots of the list and its calls, and its bytes with their lower
// bound.
void plan_slots(program::Program& p, size_t list, const graph::OpTable& operations, int64_t enough = 0);

}  // namespace kintsugi::lower
