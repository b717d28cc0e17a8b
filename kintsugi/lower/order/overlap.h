// Lets collectives run while other instructions compute.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// Moves the communication of a layer so that it runs while its neighbour computes: a gather of weights starts where
// the layer before it begins, and a reduced gradient is added to its accumulator where the layer after it ends.
void prefetch(program::Program& p, const graph::OpTable& operations);

// Each collective is enqueued at its position, and waited for only where its result is used or its operand
// overwritten, or at the end of its body; sums of gradients that are left there, before the update.
void overlap(program::Program& p);

}  // namespace kintsugi::lower
