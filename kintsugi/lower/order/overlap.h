// Overlaps collectives with computation.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// Moves communication of a layer so that it overlaps with the adjacent layer: a gather of weights starts at the
// beginning of the previous layer, and a reduced gradient is accumulated at the end of the next layer.
void prefetch(program::Program& p, const graph::OpTable& operations);

// Enqueues each collective at its position, and waits for it only where its result is used or its operand overwritten,
// or at the end of its body; for gradient reductions still in flight there, before the update.
void overlap(program::Program& p);

}  // namespace kintsugi::lower
