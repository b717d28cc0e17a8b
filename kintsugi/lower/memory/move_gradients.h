// The accumulators of a step with one micro-batch, which hold nothing from step to step.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// Moves them from the states to the arena, where each lives from its first write to the end of the step, and so takes
// the memory of activations that have died. What of one is read and no instruction has replaced by then (the gaps
// between the parameters of a bucket) is filled with zeros ahead of its first write. With several micro-batches they
// stay where they are.
void move_gradients(program::Program& p, const graph::OpTable& operations);

}  // namespace kintsugi::lower
