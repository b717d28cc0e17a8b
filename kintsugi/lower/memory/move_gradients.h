// Accumulators of a step with one micro-batch, which need not persist between steps.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// Moves them from the states to the arena, where each is live from its first write to the end of the step and can thus
// reuse the memory of dead activations. Parts that are read without having been overwritten (gaps between the
// parameters of a bucket) are zeroed before the first write. With several micro-batches, does nothing.
void move_gradients(program::Program& p, const graph::OpTable& operations);

}  // namespace kintsugi::lower
