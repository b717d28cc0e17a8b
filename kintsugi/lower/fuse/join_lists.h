// Instructions that differ in their operands alone.
#pragma once

#include "kintsugi/graph/op_row.h"
#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// On a device, neighbours of one operation that makes an output of each operand (`listed`: the sums of squares of
// gradients) become one instruction, which a device starts once: small ones take no longer than their bytes.
void join_lists(program::Program& p, const graph::OpTable& operations);

}  // namespace kintsugi::lower
